//! The progress display: bars on a terminal, plain lines in a pipe, silence on request.
