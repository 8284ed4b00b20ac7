//! From events to records to a summary: estimates, ratios, notes.
