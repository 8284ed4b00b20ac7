//! From a summary to Markdown, CSV and the terminal. Formatting of numbers happens here and nowhere else.
