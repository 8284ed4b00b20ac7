//! The command line, through the real binary.

mod against;
mod check;
pub mod checking;
mod checkout;
mod ci;
mod ci_steps;
mod cluster;
mod compare;
mod devices;
mod events;
mod exits;
mod file_names;
mod history;
mod kernels;
mod limits;
mod log;
mod machine_counts;
mod outside;
mod plan;
mod pull_requests;
mod run;
mod schema;
mod shards;
mod show;
mod tune;
mod version;
mod watch;
