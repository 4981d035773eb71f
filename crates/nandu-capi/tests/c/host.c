/* The test of the interface on a host. */
#include <stdio.h>
#include <stdlib.h>

#include "api.h"
#include "check.h"

void say(const char *text, long number) {
    printf("%s %ld\n", text, number);
}

void fail(const char *file, int line, const char *what, long found) {
    fprintf(stderr, "%s:%d: %s: %ld (%s)\n", file, line, what, found, nandu_error_name((int)found));
    exit(1);
}

void stack_begin(void) {}

void stack_end(const char *name) {
    (void)name;
}

int main(void) {
    static ram_chip first, second;
    test_store(&first, &second);
    test_store_misuse(&first);
    test_files(&first, &second);
    test_files_misuse(&first);
    return 0;
}
