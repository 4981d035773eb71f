//! What the simulator promises, held from outside.

mod rules;
