//! From events to files: what is stored, analysed and rendered of whole runs.

mod command;
mod cuts;
mod fidelity;
mod folder;
mod hostile;
mod html;
mod templates;
