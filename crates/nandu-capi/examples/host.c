/* Runs an example on a simulated chip: three times, as after three starts; then with the power cut somewhere, and once more. */
#include <stdio.h>

#include <nandu_sim.h>

#include "example.h"

void say(const char *text, long number) {
    printf("%s %ld\n", text, number);
}

int main(void) {
    nandu_chip chip;
    nandu_sim *sim = nandu_sim_new("w25n01gv", 64, 1);
    int error = sim == NULL ? NANDU_ERR_ARGUMENT : nandu_sim_chip(sim, &chip);
    for (int start = 0; start < 3 && error == 0; start++)
        error = example(&chip);
    if (error == 0)
        error = nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + 12, NANDU_TEAR_ANY);
    if (error == 0 && example(&chip) != 0) {
        printf("power cut\n");
        nandu_sim_power_on(sim);
        error = example(&chip);
    }
    if (error != 0)
        fprintf(stderr, "%s: %s\n", nandu_error_name(error), nandu_error_text(error));
    nandu_sim_free(sim);
    return error != 0;
}
