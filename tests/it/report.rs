//! From events to files: whole runs are stored, analysed and rendered.

mod command;
mod cuts;
mod fidelity;
mod folder;
mod hostile;
mod html;
mod templates;
