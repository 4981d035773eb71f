/* A port of Dhara to a simulated chip. */
#ifndef DHARA_PORT_H
#define DHARA_PORT_H

#include <dhara/nand.h>
#include <nandu_sim.h>

struct dhara_port {
    struct dhara_nand nand;
    nandu_chip chip;
};

#endif
