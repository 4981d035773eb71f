/* What the test programs have in common. They run on a host and, without a C library, in an emulated Cortex-M. */
#ifndef CHECK_H
#define CHECK_H

#include <stddef.h>
#include <stdint.h>

/* Supplied by the platform: prints a line of a text and a number; ends the program as failed; measures the stack of what runs between two calls. */
void say(const char *text, long number);
void fail(const char *file, int line, const char *what, long found);
void stack_begin(void);
void stack_end(const char *name);

/* Fails unless the call answers this. */
#define EXPECT(call, answer)                                   \
    do {                                                       \
        const long found_ = (long)(call);                      \
        if (found_ != (long)(answer))                          \
            fail(__FILE__, __LINE__, #call " is not " #answer, found_); \
    } while (0)

#define CHECK(condition)                                 \
    do {                                                 \
        if (!(condition))                                \
            fail(__FILE__, __LINE__, #condition, 0);     \
    } while (0)

static inline int same(const void *a, const void *b, size_t size) {
    const uint8_t *left = (const uint8_t *)a, *right = (const uint8_t *)b;
    while (size > 0 && *left == *right)
        left++, right++, size--;
    return size == 0;
}

static inline uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
