/* An emulated Cortex-M: where it starts, what it says to the host, and how deep calls reach into the stack. */
#include "api.h"
#include "check.h"

extern uint32_t stack_top, bss_begin, bss_end;

int main(void);

/* Asks the host for something, by semihosting. */
static int host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void leave(int is_success) __attribute__((noreturn));

static void leave(int is_success) {
    /* SYS_EXIT: the application has ended, or there was an error. */
    for (;;)
        host(0x18, (const void *)(uintptr_t)(is_success ? 0x20026 : 0x20023));
}

/* SYS_OPEN of the host's standard output, then SYS_WRITE. */
static void print(const char *text) {
    static int output;
    if (output == 0) {
        const uintptr_t open[3] = {(uintptr_t) ":tt", 4, 3};
        output = host(0x01, open);
    }
    uintptr_t write[3] = {(uintptr_t)output, (uintptr_t)text, 0};
    while (text[write[2]] != 0)
        write[2]++;
    host(0x05, write);
}

static void print_number(long number) {
    char text[12], *at = text + 11;
    unsigned long rest = number < 0 ? 0ul - (unsigned long)number : (unsigned long)number;
    *at = 0;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    print(at);
}

void say(const char *text, long number) {
    print(text);
    print(" ");
    print_number(number);
    print("\n");
}

void fail(const char *file, int line, const char *what, long found) {
    print(file);
    print(":");
    print_number(line);
    print(": ");
    print(what);
    say(":", found);
    leave(0);
}

void nandu_panic(void) {
    print("nandu found a bug of its own\n");
    leave(0);
}

#ifndef EXAMPLE
/* What lies below the stack is painted before a call, and looked at after it. */
#define FLOOR (&stack_top - 24 * 1024)
#define PAINT 0xc5c5c5c5u

static uint32_t *painted_to;
static long deepest_open, deepest_call;
static const char *name_open = "", *name_call = "";

__attribute__((noinline)) void stack_begin(void) {
    painted_to = (uint32_t *)__builtin_frame_address(0) - 16;
    for (uint32_t *at = FLOOR; at < painted_to; at++)
        *(volatile uint32_t *)at = PAINT;
}

__attribute__((noinline)) void stack_end(const char *name) {
    uint32_t *at = FLOOR;
    while (at < painted_to && *(volatile uint32_t *)at == PAINT)
        at++;
    const long depth = (long)((uint8_t *)painted_to - (uint8_t *)at) + 64;
    const int is_open = same(name, "format", 7) || same(name, "open", 5) || same(name, "mount", 6);
    if (is_open && depth > deepest_open) {
        deepest_open = depth;
        name_open = name;
    } else if (!is_open && depth > deepest_call) {
        deepest_call = depth;
        name_call = name;
    }
}

static void say_stack(const char *open, const char *call) {
    print(open);
    print(" ");
    print_number(deepest_open);
    print(" ");
    print(name_open);
    print("\n");
    print(call);
    print(" ");
    print_number(deepest_call);
    print(" ");
    print(name_call);
    print("\n");
    deepest_open = deepest_call = 0;
}

/* As the budgets have it: 1,024 blocks of 64 pages of 2 KiB, and a kilobyte each for nodes and changes. */
static nandu_chip budget_chip(void) {
    nandu_chip chip = ram_chip_of(NULL);
    chip.geometry.block_count = 1024;
    chip.geometry.bad_block_max = 20;
    return chip;
}

#endif

/* The second memory of the board, of which the linker does not know. */
#define CHIPS ((ram_chip *)0x21000000)

#ifdef EXAMPLE
int example(const nandu_chip *chip);

int main(void) {
    ram_chip_make(CHIPS);
    const nandu_chip chip = ram_chip_of(CHIPS);
    EXPECT(example(&chip), 0);
    EXPECT(example(&chip), 0);
    leave(1);
}
#else
int main(void) {
    const nandu_chip chip = budget_chip();
#ifdef WITH_STORE
#ifdef WITH_GROUP
    const nandu_store_options store = {.cache_size = 1024, .pending_size = 1024, .durability = NANDU_DURABLE_ON_SYNC};
#else
    const nandu_store_options store = {.cache_size = 1024};
#endif
    test_store(&CHIPS[0], &CHIPS[1]);
    test_store_misuse(&CHIPS[0]);
    say_stack("store_stack_open", "store_stack_call");
    say("store_memory", (long)nandu_store_memory(&chip, &store));
#endif
#ifdef WITH_FILES
    const nandu_fs_options files = {.cache_size = 1024, .pending_size = 1024, .open_max = 8};
    test_files(&CHIPS[0], &CHIPS[1]);
    test_files_misuse(&CHIPS[0]);
    say_stack("files_stack_open", "files_stack_call");
    say("files_memory", (long)nandu_fs_memory(&chip, &files));
#endif
    leave(1);
}
#endif

static void fault(void) {
    print("fault\n");
    leave(0);
}

static void reset(void) {
    for (volatile uint32_t *at = &bss_begin; at < &bss_end; at++)
        *at = 0;
    /* The floating-point unit, which the compiler uses for moves. */
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20;
    __asm__ volatile("dsb\n isb");
    main();
}

__attribute__((used, section(".vectors"))) static const void *const vectors[16] = {
    &stack_top, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
};
