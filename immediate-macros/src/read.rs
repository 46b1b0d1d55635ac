//! `immediate_read!` and `immediate_if!`.
//!
//! Both import the path under a name of their own, inside a block that declares a type of that name:
//! the import carries the variable's type if there is one, and where there is none, because the
//! path is not an immediate variable, the block's type stands in and the error can say so.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{BinOp, Block, Error, Expr, ExprBlock, ExprClosure, Lit, Path, Stmt, Token, parse_quote};

/// `$crate`, which the macro of `immediate` passes first.
struct Root(TokenStream);

impl Parse for Root {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let root = input.call(Ident::parse_any)?;
        Ok(Root(quote!(#root)))
    }
}

/// The path of a variable.
struct Variable(Path);

const EXPECTED: &str = "expected the path of an immediate variable, such as `LIMIT` or \
                        `config::LIMIT`";

const EXPECTED_FIRST: &str = "expected the path of an immediate variable; it stands before what it \
                              is compared with: `immediate_if!(LIMIT >= 2)`";

const EXPECTED_TEST: &str = "expected nothing, a comparison such as `>= 2`, a test such as \
                             `, |value| value & 4 != 0`, or arms such as `=> { … } else { … }`";

const EXPECTED_ARM: &str = "an arm is a block, and there are at most two: \
                            `immediate_if!(NAME => { … } else { … })`";

const COMBINE: &str = "immediate_if! takes one test of one variable; combine outside, as in \
                       `immediate_if!(A) && immediate_if!(B >= 2)`, or test one variable by a \
                       closure: `immediate_if!(NAME, |value| …)`";

impl Parse for Variable {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            return Err(Error::new(Span::call_site(), EXPECTED));
        }
        let start = input.span();
        let expected = if input.peek(Lit) { EXPECTED_FIRST } else { EXPECTED };
        let path = input.call(Path::parse_mod_style).map_err(|_| Error::new(start, expected))?;
        if path.segments.first().is_some_and(|first| first.ident == "Self") {
            let text = "a variable is a static, which `Self::` cannot name: give its path";
            return Err(Error::new(path.span(), text));
        }
        Ok(Variable(path))
    }
}

impl Variable {
    /// A block in which `name` is the variable, and its type, around `body`.
    fn import(&self, name: &Ident, body: TokenStream) -> TokenStream {
        let path = &self.0;
        let anchored = Ident::new(&name.to_string(), name.span());
        quote_spanned! {Span::mixed_site()=> {
            #[allow(dead_code, non_camel_case_types)]
            enum #anchored {}
            {
                #[allow(unused_imports)]
                use #path as #name;
                #body
            }
        }}
    }

    /// The name under which it is imported, placed where the path stands, for errors.
    fn name(&self) -> Ident {
        Ident::new("__Variable", Span::mixed_site().located_at(self.0.span()))
    }
}

pub(crate) fn expand_read(input: TokenStream) -> syn::Result<TokenStream> {
    struct Input(Root, Variable);
    impl Parse for Input {
        fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
            let (root, variable) = (input.parse()?, input.parse()?);
            if !input.is_empty() {
                let text = "immediate_read! takes the path of a variable and nothing else; compute \
                            with what it gives: `immediate_read!(LIMIT) + 1`";
                return Err(Error::new(input.span(), text));
            }
            Ok(Input(root, variable))
        }
    }
    let Input(Root(root), variable) = syn::parse2(input)?;
    let name = variable.name();
    Ok(variable.import(&name, quote!(#root::__private::site_value!(#name))))
}

/// What decides a branch.
enum Test {
    Plain,
    Comparison(Ident, TokenStream, Box<Expr>),
    Closure(ExprClosure),
}

struct Branch {
    root: TokenStream,
    is_likely: bool,
    is_negated: bool,
    variable: Variable,
    test: Test,
    arms: Option<(Block, Option<Block>)>,
}

impl Parse for Branch {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let Root(root) = input.parse()?;
        let is_likely = hint(input)?;
        let is_negated = input.parse::<Option<Token![!]>>()?.is_some();
        let variable: Variable = input.parse()?;
        let test = if input.is_empty() || input.peek(Token![=>]) {
            Test::Plain
        } else if input.parse::<Option<Token![,]>>()?.is_some() {
            Test::Closure(closure(input)?)
        } else {
            comparison(&variable, input)?
        };
        if is_negated && !matches!(test, Test::Plain) {
            let text = "`!` stands before a variable that is tested alone; here it belongs into the \
                        comparison or the test";
            return Err(Error::new(variable.0.span(), text));
        }
        let arms = if input.parse::<Option<Token![=>]>>()?.is_some() {
            let taken = arm(input)?;
            let other = match input.parse::<Option<Token![else]>>()? {
                Some(_) => Some(arm(input)?),
                None => None,
            };
            if !input.is_empty() {
                return Err(Error::new(input.span(), EXPECTED_ARM));
            }
            Some((taken, other))
        } else {
            None
        };
        if !input.is_empty() {
            return Err(Error::new(input.span(), COMBINE));
        }
        Ok(Branch { root, is_likely, is_negated, variable, test, arms })
    }
}

/// `likely` or `unlikely` before a variable. A variable may itself have such a name.
fn hint(input: ParseStream<'_>) -> syn::Result<bool> {
    let ahead = input.fork();
    if let Ok(word) = ahead.parse::<Ident>()
        && (word == "likely" || word == "unlikely")
        && (ahead.peek(syn::Ident)
            || ahead.peek(Token![crate])
            || ahead.peek(Token![self])
            || ahead.peek(Token![super])
            || ahead.peek(Token![::]) && !input.peek2(Token![::])
            || ahead.peek(Token![!]) && !ahead.peek(Token![!=]))
    {
        input.parse::<Ident>()?;
        return Ok(word == "likely");
    }
    Ok(false)
}

fn arm(input: ParseStream<'_>) -> syn::Result<Block> {
    if input.peek(syn::token::Brace) {
        return input.parse();
    }
    let place = if input.is_empty() { Span::call_site() } else { input.span() };
    Err(Error::new(place, EXPECTED_ARM))
}

fn closure(input: ParseStream<'_>) -> syn::Result<ExprClosure> {
    let expected = "expected a test of the variable's value, such as `|value| value & 4 != 0`";
    let mut test: Expr = input.parse().map_err(|error| Error::new(error.span(), expected))?;
    // What a macro passes on as `$test:expr` comes in a group that nobody sees.
    while let Expr::Group(group) = test {
        test = *group.expr;
    }
    match test {
        Expr::Closure(closure) if closure.inputs.len() == 1 => Ok(closure),
        // The name of a function, which is what clippy makes of a closure that only calls one.
        Expr::Path(function) => {
            let value = Ident::new("__value", Span::mixed_site());
            Ok(parse_quote!(|#value| #function(#value)))
        }
        other => Err(Error::new_spanned(other, expected)),
    }
}

fn comparison(variable: &Variable, input: ParseStream<'_>) -> syn::Result<Test> {
    let start = input.span();
    if input.peek(Token![=]) && !input.peek(Token![==]) {
        let text = "a variable is compared by `==`, and set by `NAME.set(value)`";
        return Err(Error::new(start, text));
    }
    let operator: BinOp = input.parse().map_err(|_| Error::new(start, EXPECTED_TEST))?;
    let name = match operator {
        BinOp::Eq(_) => "Equal",
        BinOp::Ne(_) => "NotEqual",
        BinOp::Lt(_) => "Less",
        BinOp::Le(_) => "LessOrEqual",
        BinOp::Gt(_) => "Greater",
        BinOp::Ge(_) => "GreaterOrEqual",
        BinOp::And(_) | BinOp::Or(_) => return Err(Error::new(start, COMBINE)),
        _ => {
            let text = "immediate_if! compares a variable with a constant by ==, !=, <, <=, > or \
                        >=; any other test is a closure: `immediate_if!(NAME, |value| …)`";
            return Err(Error::new(start, text));
        }
    };
    let wanted = |place: Span| {
        Error::new(place, "expected a constant of the variable's type, as in `NAME >= 2`")
    };
    if input.is_empty() {
        return Err(wanted(start));
    }
    let mut constant: Expr = input.parse().map_err(|error| wanted(error.span()))?;
    if let Expr::Binary(binary) = &constant
        && matches!(
            binary.op,
            BinOp::And(_)
                | BinOp::Or(_)
                | BinOp::Eq(_)
                | BinOp::Ne(_)
                | BinOp::Lt(_)
                | BinOp::Le(_)
                | BinOp::Gt(_)
                | BinOp::Ge(_)
        )
    {
        return Err(Error::new_spanned(binary.op, COMBINE));
    }
    let mut look = LooksLocal(None);
    look.visit_expr(&constant);
    if let Some((span, name)) = look.0 {
        let text = format!(
            "`{name}` is not a constant: immediate_if! decides the comparison when the variable is \
             set. For a value that is known only here write `immediate_read!({}) {} {}`",
            as_written(&variable.0),
            quote!(#operator),
            as_written(&constant),
        );
        return Err(Error::new(span, text));
    }
    // The braces have done their work; left there, the compiler would find them superfluous.
    if let Expr::Block(ExprBlock { attrs, label: None, block }) = &constant
        && attrs.is_empty()
        && let [Stmt::Expr(inner, None)] = block.stmts.as_slice()
    {
        constant = inner.clone();
    }
    Ok(Test::Comparison(format_ident!("{name}"), quote!(#operator), Box::new(constant)))
}

/// Tokens as a person writes them, for messages: no space around a dot, a path's colons, or a call.
fn as_written(tokens: &impl ToTokens) -> String {
    let mut text = String::new();
    for token in tokens.to_token_stream().to_string().split(' ') {
        let is_tight = token.starts_with(['.', ':', ')', ',', '?', '['])
            || token.starts_with('(') && text.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || text.ends_with(['.', ':', '(', '!', '&', '['])
            || text.is_empty();
        if !is_tight {
            text.push(' ');
        }
        text.push_str(token);
    }
    text
}

/// Finds what by convention is a local variable: a lower-case name that is not called. In braces,
/// `{ name }`, it is taken for a constant all the same.
struct LooksLocal(Option<(Span, String)>);

impl Visit<'_> for LooksLocal {
    fn visit_expr(&mut self, expression: &Expr) {
        match expression {
            Expr::Block(_) | Expr::Const(_) | Expr::Closure(_) => {}
            Expr::Call(call) => call.args.iter().for_each(|argument| self.visit_expr(argument)),
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident()
                    && name.to_string().starts_with(|c: char| c.is_lowercase())
                    && self.0.is_none()
                {
                    self.0 = Some((name.span(), name.to_string()));
                }
            }
            other => syn::visit::visit_expr(self, other),
        }
    }
}

pub(crate) fn expand_branch(input: TokenStream) -> syn::Result<TokenStream> {
    let Branch { root, is_likely, is_negated, variable, test, arms } = syn::parse2(input)?;
    // The branch is laid out of the way: it is taken for the outcome that is not expected.
    let label = !is_likely;
    let kind = if label != is_negated { quote!(1) } else { quote!(2) };
    let name = variable.name();
    let site = match test {
        Test::Plain => quote!(#root::__private::site_branch!(#name, #kind, #label)),
        Test::Comparison(operator, symbol, constant) => quote! {
            #root::__private::site_comparison!(
                #name, #kind, #label, #operator, #symbol, #constant
            )
        },
        Test::Closure(closure) => {
            quote!(#root::__private::site_test!(#name, #kind, #label, #closure))
        }
    };
    let condition = variable.import(&name, site);
    Ok(match arms {
        None => condition,
        Some((taken, None)) => quote!(if #condition #taken),
        Some((taken, Some(other))) => quote!(if #condition #taken else #other),
    })
}
