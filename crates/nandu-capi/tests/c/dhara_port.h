/* A port of Dhara to a simulated chip. */
#ifndef DHARA_PORT_H
#define DHARA_PORT_H

#include <dhara/nand.h>
#include <nandu_sim.h>

/* What ports say in *err. */
enum habit {
    SAYS,    /* what Dhara has a word for */
    SILENT,  /* nothing of reads that fail: *err stays as it was */
    RECOVERS /* as the first, but of a program that failed, that Dhara should recover */
};

struct dhara_port {
    struct dhara_nand nand;
    nandu_chip chip;
    enum habit habit;
    uint32_t programs;      /* since power-on of the test */
    uint32_t fails_at;      /* the number of a program that the chip says failed; 0: none */
    uint32_t twice;         /* a page that was programmed twice, which cannot be corrected until it is erased */
    uint32_t last;          /* the page that was programmed last */
    uint32_t reads;         /* counted while the bus may fail */
    uint32_t fails_from;    /* the bus fails from the read of this number on, */
    uint32_t fails_to;      /* until the one of this number */
};

#endif
