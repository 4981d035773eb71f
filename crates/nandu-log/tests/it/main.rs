//! The log driven by a toy owner, on simulated chips.

mod costs;
mod cuts;
mod faults;
mod hostile;
mod life;
mod model;
mod toy;
