/* The module that the benchmark `register` loads: 16 variables, and SITES sites that read them in
 * turn, emitted by the assembler with the bytes and the records of `immediate_read`. */

#include "immediate.h"

#define ALL(each) \
    each(a) each(b) each(c) each(d) each(e) each(f) each(g) each(h) \
    each(i) each(j) each(k) each(l) each(m) each(n) each(o) each(p)

#define DEFINE(name) IMMEDIATE_DEFINE(u32, name, "module." #name, 7);
ALL(DEFINE)

#define RECORD(name)                                             \
    ".long 22b + 8 * immediate_module_site - .\n"                \
    ".long " #name "@GOTPCREL\n"                                 \
    ".long 0\n"                                                  \
    ".set immediate_module_site, immediate_module_site + 1\n"

#define TEXT_(value) #value
#define TEXT(value) TEXT_(value)

__asm__(
    ".pushsection .text.sites,\"axR\",@progbits\n"
    ".p2align 3\n"
    "22:\n"
    ".rept " TEXT(SITES) "\n"
    "movl $7, %eax\n"
    ".byte 0x0f, 0x1f, 0x00\n"
    ".endr\n"
    ".popsection\n"
    ".pushsection immediate_sites_0_1_0,\"aR\",@progbits\n"
    ".balign 4\n"
    ".set immediate_module_site, 0\n"
    ".rept " TEXT(SITES) " / 16\n"
    ALL(RECORD)
    ".endr\n"
    ".popsection\n");
