//! In place of `placing.rs` where feature `mlc` is left out: there are no policies.

use core::convert::Infallible;
use core::marker::PhantomData;

/// Policies, of which there are none.
pub(crate) struct Placing<'m>(pub(crate) Infallible, pub(crate) PhantomData<&'m mut [u8]>);
