//! What the store itself costs: the figures that the project holds it to.

pub(super) mod million;
pub(super) mod mount;
pub(super) mod peers_500;
pub(super) mod skew;
