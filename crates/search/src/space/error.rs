/// Why a space cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// No combination satisfies all constraints.
    #[error("no combination of the values satisfies all constraints")]
    Empty,
    /// The number of valid points exceeds 64 bits.
    #[error("the space has more than 2^64 valid points; give it fewer parameters or values")]
    TooLarge,
    /// The constraints relate too many parameters with each other.
    #[error("the constraints are too complex to compile; state them with fewer parameters each")]
    TooComplex,
}
