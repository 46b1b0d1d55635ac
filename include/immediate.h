/* Immediate values for modules written in C (C11) and C++ (C++17), on x86-64 Linux, with GCC or clang.
 *
 * A variable lives in the instructions that read it; setting it patches them while all threads run:
 *
 *     IMMEDIATE_SHARED(u32, limit, "app.limit", 10);
 *     IMMEDIATE_DEFINE(bool, trace, "plugin.trace", false);
 *
 *     if (immediate_if(trace)) { ... }                  a nop or a jmp
 *     uint32_t most = immediate_read(limit);            a mov
 *     char error[256];
 *     if (immediate_set(limit, 20, error, sizeof error) != 0) { puts(error); }
 *
 * IMMEDIATE_SHARED is one variable with all modules, in C or Rust, that declare it shared with the same
 * name and type; IMMEDIATE_DEFINE is this file's own. Both stand at file scope, in the file that reads
 * them; a shared variable may stand in several files. Types: bool, u8, u16, u32, u64, i8, i16, i32, i64.
 * The initial value is a constant.
 *
 * There is nothing else to write. A module registers itself when it is loaded, with the runtime that a
 * module written in Rust brings along; one that comes before any of those is registered when the first
 * of them comes. Without a runtime reads give the initial values, and setting fails.
 *
 * Everything whose name ends with an underscore belongs to the implementation. The layouts are those of
 * the crate `immediate`: exchange.rs, descriptor.rs, variable.rs, record.rs, runtime/interface.rs.
 */
#ifndef IMMEDIATE_H
#define IMMEDIATE_H

#if !defined(__x86_64__) || !defined(__linux__) || !defined(__LP64__)
#error "immediate.h has sites for x86-64 Linux only"
#endif

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __USE_GNU
/* <link.h> declares these under _GNU_SOURCE only. */
struct dl_phdr_info {
    ElfW(Addr) dlpi_addr;
    const char *dlpi_name;
    const ElfW(Phdr) *dlpi_phdr;
    ElfW(Half) dlpi_phnum;
};
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *);
#endif

/* ---- Layouts ---- */

struct immediate_text {
    const char *start;
    size_t length;
};

struct immediate_bits_ {
    uint64_t low, high;
};

struct immediate_descriptor_ {
    uint32_t kind, size, flags, line, column;
    struct immediate_text name, doc, file;
    struct immediate_bits_ built_in;
    /* Functions of types that the kind and the size do not tell. */
    void (*type_name)(void), (*initial)(void), (*parse)(void), (*show)(void);
};

struct immediate_variable_ {
    const struct immediate_descriptor_ *descriptor;
    uint32_t entry;
    __attribute__((aligned(16))) uint64_t first[2];
    uint64_t second[2];
    size_t turn;
};

/* A variable and its new value, for immediate_apply. */
struct immediate_change {
    struct immediate_variable_ *variable;
    struct immediate_bits_ bits;
    uint32_t size, is_pointer;
};

struct immediate_sink_ {
    void (*write)(void *, struct immediate_text);
    void *context;
};

struct immediate_key_ {
    size_t place;
    struct immediate_text name, file;
    uint32_t line;
};

/* A variable of the process, as immediate_list shows it; the texts live during the call. */
struct immediate_row {
    struct immediate_key_ key;
    struct immediate_text doc, type_name, initial, value, module;
    uint32_t column, is_shared;
    size_t sites;
    uint64_t updates;
};

struct immediate_each_ {
    void (*call)(void *, const struct immediate_row *);
    void *context;
};

struct immediate_interface_ {
    uint32_t layout, size;
    char sites[16], version[16];
    uint32_t state;
    const void *chain;
    void (*enter)(const void *);
    void (*leave)(const void *);
    uint32_t (*apply)(const void *, const struct immediate_change *, size_t, uint32_t,
                      struct immediate_sink_);
    uint32_t (*lock)(const void **, struct immediate_sink_);
    void (*unlock)(const void *);
    size_t (*site_count)(const struct immediate_variable_ *);
    uint32_t (*variables)(struct immediate_each_);
    uint32_t (*set_text)(const struct immediate_key_ *, struct immediate_text,
                         struct immediate_sink_);
    void (*modules)(void), (*sites_of)(void), (*status)(void), (*configure)(void),
        (*refusal)(void);
};

struct immediate_asking_ {
    uint32_t is_asking;
    int32_t header;
};

/* Kinds of values, and the type of each name. */
enum {
    immediate_kind_u8_ = 0, immediate_kind_u16_ = 0, immediate_kind_u32_ = 0, immediate_kind_u64_ = 0,
    immediate_kind_i8_ = 1, immediate_kind_i16_ = 1, immediate_kind_i32_ = 1, immediate_kind_i64_ = 1,
    immediate_kind_bool_ = 2
};
typedef uint8_t immediate_type_u8_;
typedef uint16_t immediate_type_u16_;
typedef uint32_t immediate_type_u32_;
typedef uint64_t immediate_type_u64_;
typedef int8_t immediate_type_i8_;
typedef int16_t immediate_type_i16_;
typedef int32_t immediate_type_i32_;
typedef int64_t immediate_type_i64_;
typedef bool immediate_type_bool_;
/* <stdbool.h> makes `bool` a macro in C. */
#define immediate_kind__Bool_ immediate_kind_bool_
typedef bool immediate_type__Bool_;

/* ---- What each module has once: its header, the beginnings of its tables, its note ---- */

#define IMMEDIATE_GROUP_ "__immediate_c_0_1_0,comdat\n"
#define IMMEDIATE_BOUND_(table)                      \
    ".hidden __start_immediate_" table "_0_1_0\n"    \
    ".hidden __stop_immediate_" table "_0_1_0\n"     \
    ".long __start_immediate_" table "_0_1_0 - .\n"  \
    ".long __stop_immediate_" table "_0_1_0 - .\n"
#define IMMEDIATE_TABLE_(table, align, size)                                        \
    ".pushsection immediate_" table "_0_1_0,\"aGR\",@progbits," IMMEDIATE_GROUP_    \
    ".balign " align "\n.zero " size "\n.popsection\n"

__asm__(
    ".pushsection .rodata.__immediate_c_0_1_0,\"aG\",@progbits," IMMEDIATE_GROUP_
    ".balign 8\n"
    ".weak __immediate_c_0_1_0\n"
    ".hidden __immediate_c_0_1_0\n"
    ".type __immediate_c_0_1_0,@object\n"
    "__immediate_c_0_1_0:\n"
    ".long 1\n"
    ".long 36\n"
    IMMEDIATE_BOUND_("variables")
    IMMEDIATE_BOUND_("sites")
    IMMEDIATE_BOUND_("comparisons")
    IMMEDIATE_BOUND_("tests")
    ".popsection\n"
    ".pushsection .data.__immediate_c_asking_0_1_0,\"awG\",@progbits," IMMEDIATE_GROUP_
    ".balign 4\n"
    ".weak __immediate_c_asking_0_1_0\n"
    ".hidden __immediate_c_asking_0_1_0\n"
    ".type __immediate_c_asking_0_1_0,@object\n"
    "__immediate_c_asking_0_1_0:\n"
    ".long 0\n"
    ".long __immediate_c_0_1_0 - .\n"
    ".popsection\n"
    IMMEDIATE_TABLE_("variables", "4", "4")
    IMMEDIATE_TABLE_("sites", "4", "12")
    IMMEDIATE_TABLE_("comparisons", "8", "24")
    IMMEDIATE_TABLE_("tests", "4", "16")
    ".pushsection .note.immediate,\"aGR\",@note," IMMEDIATE_GROUP_
    ".balign 4\n"
    ".long 10\n"
    ".long 4\n"
    ".long 2\n"
    ".asciz \"immediate\"\n"
    ".balign 4\n"
    ".long __immediate_c_asking_0_1_0 - .\n"
    ".popsection\n");

#ifdef __cplusplus
extern "C" {
#endif
extern const char immediate_header_[] __asm__("__immediate_c_0_1_0")
    __attribute__((visibility("hidden")));
extern struct immediate_asking_ immediate_asking_ __asm__("__immediate_c_asking_0_1_0")
    __attribute__((visibility("hidden")));
#ifdef __cplusplus
}
#endif

/* ---- The runtime ---- */

static inline int immediate_visit_(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    for (size_t n = 0; n < info->dlpi_phnum; n++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[n];
        if (segment->p_type != PT_NOTE) {
            continue;
        }
        const char *notes = (const char *)(info->dlpi_addr + segment->p_vaddr);
        size_t left = segment->p_memsz, align = segment->p_align == 8 ? 8 : 4;
        while (left >= 12) {
            uint32_t head[3];
            memcpy(head, notes, sizeof head);
            size_t start = (12 + (size_t)head[0] + align - 1) / align * align;
            size_t end = (start + head[1] + align - 1) / align * align;
            if (start + head[1] > left) {
                break;
            }
            if (head[0] == 10 && head[1] == 4 && head[2] == 1 &&
                memcmp(notes + 12, "immediate", 10) == 0) {
                int32_t distance;
                memcpy(&distance, notes + start, sizeof distance);
                const struct immediate_interface_ *one =
                    (const struct immediate_interface_ *)(notes + start + distance);
                if (one->layout == 1 && one->size == sizeof *one &&
                    memcmp(one->sites, "x86_64", 7) == 0 &&
                    __atomic_load_n(&one->state, __ATOMIC_SEQ_CST) == 2) {
                    *(const struct immediate_interface_ **)found = one;
                    return 1;
                }
            }
            if (end >= left) {
                break;
            }
            notes += end;
            left -= end;
        }
    }
    return 0;
}

/* The runtime of the process; null while there is none. Its library is never unmapped. */
static inline const struct immediate_interface_ *immediate_runtime_(void) {
    static const struct immediate_interface_ *known;
    const struct immediate_interface_ *found = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (!found) {
        dl_iterate_phdr(immediate_visit_, &found);
        __atomic_store_n(&known, found, __ATOMIC_RELEASE);
    }
    return found;
}

__attribute__((constructor(101), used)) static void immediate_enter_(void) {
    /* Every object file of a module has this function; the first registers all of them. */
    if (__atomic_exchange_n(&immediate_asking_.is_asking, 1, __ATOMIC_SEQ_CST) == 0) {
        const struct immediate_interface_ *runtime = immediate_runtime_();
        if (runtime) {
            runtime->enter(immediate_header_);
        }
    }
}

__attribute__((destructor(101), used)) static void immediate_leave_(void) {
    if (__atomic_exchange_n(&immediate_asking_.is_asking, 0, __ATOMIC_SEQ_CST) == 1) {
        const struct immediate_interface_ *runtime = immediate_runtime_();
        if (runtime) {
            runtime->leave(immediate_header_);
        }
    }
}

/* Where an error's text goes; what does not fit is cut. */
struct immediate_error_ {
    char *start;
    size_t size, length;
};

static inline void immediate_write_(void *context, struct immediate_text text) {
    struct immediate_error_ *error = (struct immediate_error_ *)context;
    if (error->size == 0) {
        return;
    }
    size_t room = error->size - 1 - error->length;
    size_t length = text.length < room ? text.length : room;
    memcpy(error->start + error->length, text.start, length);
    error->length += length;
    error->start[error->length] = 0;
}

static inline struct immediate_text immediate_text_(const char *text) {
    struct immediate_text whole = {text, strlen(text)};
    return whole;
}

static inline int immediate_no_runtime_(struct immediate_error_ *error) {
    immediate_write_(error, immediate_text_("no module with the runtime is loaded, so nothing can be "
                                            "set: link or load one that is written in Rust"));
    return -1;
}

/* ---- The interface ---- */

/* Sets several variables at one instant, all or none. 0, or an answer that is not 0 and a line in
 * `error`, which has room for `size` bytes. */
static inline int immediate_apply(const struct immediate_change *changes, size_t count, char *error,
                                  size_t size) {
    struct immediate_error_ into = {error, size, 0};
    struct immediate_sink_ sink = {immediate_write_, &into};
    const struct immediate_interface_ *runtime = immediate_runtime_();
    return runtime ? (int)runtime->apply(NULL, changes, count, 0, sink)
                   : immediate_no_runtime_(&into);
}

/* Calls `each` for every variable of the process, with `context`. 0, or -1 if there is no runtime. */
static inline int immediate_list(void (*each)(void *, const struct immediate_row *),
                                 void *context) {
    const struct immediate_interface_ *runtime = immediate_runtime_();
    struct immediate_each_ all = {each, context};
    return runtime ? (int)runtime->variables(all) : -1;
}

struct immediate_search_ {
    const char *name, *value;
    int answer;
    struct immediate_error_ *error;
};

static inline void immediate_match_(void *context, const struct immediate_row *row) {
    struct immediate_search_ *search = (struct immediate_search_ *)context;
    if (search->answer == -2 && row->key.name.length == strlen(search->name) &&
        memcmp(row->key.name.start, search->name, row->key.name.length) == 0) {
        struct immediate_sink_ sink = {immediate_write_, search->error};
        search->answer = (int)immediate_runtime_()->set_text(
            &row->key, immediate_text_(search->value), sink);
    }
}

/* Sets a variable of the process by its name, to what a text says. As immediate_apply. */
static inline int immediate_set_text(const char *name, const char *value, char *error, size_t size) {
    struct immediate_error_ into = {error, size, 0};
    struct immediate_search_ search = {name, value, -2, &into};
    if (immediate_list(immediate_match_, &search) != 0) {
        return immediate_no_runtime_(&into);
    }
    if (search.answer == -2) {
        immediate_write_(&into, immediate_text_("no variable has this name: immediate_list tells "
                                                "those that there are"));
    }
    return search.answer;
}

/* The bits of a value, zero-extended. */
#define immediate_bits_of_(type, value)                                         \
    (sizeof(immediate_type_##type##_) == 1   ? (uint64_t)(uint8_t)(value)       \
     : sizeof(immediate_type_##type##_) == 2 ? (uint64_t)(uint16_t)(value)      \
     : sizeof(immediate_type_##type##_) == 4 ? (uint64_t)(uint32_t)(value)      \
                                             : (uint64_t)(value))

#define immediate_define_(type, NAME, name, initial, flags)                                          \
    typedef immediate_type_##type##_ immediate_type_of_##NAME##_;                                    \
    enum { immediate_kind_of_##NAME##_ = immediate_kind_##type##_ };                                 \
    /* The bits of the initial value, in parts that an enumerator can hold. */                       \
    enum {                                                                                           \
        immediate_0_of_##NAME##_ = (int)(immediate_bits_of_(type, initial) & 0xffff),                \
        immediate_1_of_##NAME##_ = (int)(immediate_bits_of_(type, initial) >> 16 & 0xffff),          \
        immediate_2_of_##NAME##_ = (int)(immediate_bits_of_(type, initial) >> 32 & 0xffff),          \
        immediate_3_of_##NAME##_ = (int)(immediate_bits_of_(type, initial) >> 48 & 0xffff)           \
    };                                                                                               \
    static const struct immediate_descriptor_ immediate_descriptor_of_##NAME##_ = {                  \
        immediate_kind_##type##_, sizeof(immediate_type_##type##_), flags, __LINE__, 1,              \
        {name, sizeof(name) - 1}, {"", 0}, {__FILE__, sizeof(__FILE__) - 1},                         \
        {immediate_bits_of_(type, initial), 0}, 0, 0, 0, 0};                                         \
    static struct immediate_variable_ NAME = {                                                       \
        &immediate_descriptor_of_##NAME##_, 0, {immediate_bits_of_(type, initial), 0},               \
        {immediate_bits_of_(type, initial), 0}, 0};                                                  \
    /* Never called, but kept, and with it the record. */                                            \
    __attribute__((used, noinline)) static void immediate_keep_##NAME##_(void) {                     \
        __asm__ volatile(".pushsection immediate_variables_0_1_0,\"aR\",@progbits\n"                 \
                         ".balign 4\n"                                                               \
                         ".long %c0@GOTPCREL\n"                                                      \
                         ".popsection\n"                                                             \
                         :                                                                           \
                         : "i"(&NAME));                                                              \
    }                                                                                                \
    struct immediate_semicolon_

/* A variable of this file. */
#define IMMEDIATE_DEFINE(type, NAME, name, initial) immediate_define_(type, NAME, name, initial, 0)

/* A variable of all modules that share this name and type. */
#define IMMEDIATE_SHARED(type, NAME, name, initial) immediate_define_(type, NAME, name, initial, 1)

#define immediate_initial_(NAME)                                                             \
    ((uint64_t)immediate_0_of_##NAME##_ | (uint64_t)immediate_1_of_##NAME##_ << 16 |         \
     (uint64_t)immediate_2_of_##NAME##_ << 32 | (uint64_t)immediate_3_of_##NAME##_ << 48)

/* The record of a site; the relocation that changes nothing keeps it as long as the code. */
#define IMMEDIATE_RECORD_(kind, target)                       \
    ".reloc 2b, R_X86_64_NONE, 3f\n"                          \
    ".pushsection immediate_sites_0_1_0,\"aR\",@progbits\n"   \
    ".balign 4\n"                                             \
    "3:\n"                                                    \
    ".long 2b - .\n"                                          \
    ".long %c[variable]@GOTPCREL + " kind "\n"                \
    ".long " target "\n"                                      \
    ".popsection\n"

/* The value of a variable, from the instruction itself. */
#define immediate_read(NAME)                                                                 \
    (__extension__({                                                                         \
        uint64_t immediate_bits_;                                                            \
        if (sizeof(immediate_type_of_##NAME##_) > 4) {                                       \
            __asm__ volatile(".p2align 3\n"                                                  \
                             ".byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                    \
                             "2:\n"                                                          \
                             "{movabsq %[built], %[out]|movabs %[out], %[built]}\n"          \
                             IMMEDIATE_RECORD_("0", "0")                                     \
                             : [out] "=r"(immediate_bits_)                                   \
                             : [built] "i"(immediate_initial_(NAME)), [variable] "i"(&NAME)); \
        } else {                                                                             \
            __asm__ volatile(".p2align 3,,5\n"                                               \
                             "2:\n"                                                          \
                             "{movl %[built], %k[out]|mov %k[out], %[built]}\n"              \
                             IMMEDIATE_RECORD_("0", "0")                                     \
                             : [out] "=r"(immediate_bits_)                                   \
                             : [built] "i"((uint32_t)immediate_initial_(NAME)),              \
                               [variable] "i"(&NAME));                                       \
        }                                                                                    \
        (immediate_type_of_##NAME##_) immediate_bits_;                                       \
    }))

/* Whether a variable of type bool is true: a nop, or a jump out of the way. */
#define immediate_if(NAME)                                                                   \
    (__extension__({                                                                         \
        __label__ immediate_taken_, immediate_end_;                                          \
        bool immediate_outcome_ = false;                                                     \
        (void)sizeof(char[(int)immediate_kind_of_##NAME##_ == 2 ? 1 : -1]); /* a bool */     \
        __asm__ goto(".p2align 3,,4\n"                                                       \
                     "2:\n"                                                                  \
                     ".if %c[built]\n"                                                       \
                     ".byte 0xe9\n"                                                          \
                     ".long %l[immediate_taken_] - . - 4\n"                                  \
                     ".else\n"                                                               \
                     ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                  \
                     ".endif\n"                                                              \
                     IMMEDIATE_RECORD_("1", "%l[immediate_taken_] - .")                      \
                     :                                                                       \
                     : [built] "i"(immediate_0_of_##NAME##_), [variable] "i"(&NAME)          \
                     :                                                                       \
                     : immediate_taken_);                                                    \
        goto immediate_end_;                                                                 \
        immediate_taken_:                                                                    \
        /* What the arm reads is not read before the branch. */                              \
        __asm__ volatile("" ::: "memory");                                                   \
        immediate_outcome_ = true;                                                           \
        immediate_end_:;                                                                     \
        immediate_outcome_;                                                                  \
    }))

/* The value in memory, for code where no site is wanted. */
#define immediate_get(NAME) \
    ((immediate_type_of_##NAME##_)__atomic_load_n(&(NAME).first[0], __ATOMIC_ACQUIRE))

/* A change for immediate_apply. */
#define IMMEDIATE_CHANGE(NAME, value)                                                         \
    {                                                                                         \
        &(NAME), {immediate_bits_in_(sizeof(immediate_type_of_##NAME##_),                     \
                                     (uint64_t)(immediate_type_of_##NAME##_)(value)), 0},     \
            (uint32_t)sizeof(immediate_type_of_##NAME##_), 0                                  \
    }

static inline uint64_t immediate_bits_in_(size_t size, uint64_t value) {
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

/* Sets a variable. As immediate_apply. */
#define immediate_set(NAME, value, error, size)                                    \
    (__extension__({                                                               \
        const struct immediate_change immediate_one_ = IMMEDIATE_CHANGE(NAME, value); \
        immediate_apply(&immediate_one_, 1, error, size);                          \
    }))

#endif
