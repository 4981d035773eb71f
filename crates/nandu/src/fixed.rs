//! Integers as keys and values.

/// An integer as a key or a value of a [`Map`](crate::Map): `N` bytes, high byte first, so that bytes are ordered as numbers are.
pub trait Fixed<const N: usize>: Copy {
    /// As bytes.
    fn to_bytes(self) -> [u8; N];
    /// From bytes.
    fn from_bytes(bytes: [u8; N]) -> Self;
}

macro_rules! fixed {
    ($($integer:ty = $size:literal),*) => {$(
        impl Fixed<$size> for $integer {
            fn to_bytes(self) -> [u8; $size] {
                self.to_be_bytes()
            }

            fn from_bytes(bytes: [u8; $size]) -> Self {
                <$integer>::from_be_bytes(bytes)
            }
        }
    )*};
}

fixed!(u32 = 4, u64 = 8);
