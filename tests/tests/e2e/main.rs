//! End-to-end tests, a module a subject. One program, so that it is linked
//! once and its tests run side by side.

mod assistant;
mod catalog;
mod contract;
mod deploy;
mod durability;
mod evidence;
mod groups;
mod hostile;
mod identity;
mod notes;
mod openapi;
mod order;
mod protocol;
mod questionnaires;
mod rates;
mod repohost;
mod sign_in;
mod support;
mod swap;
mod uploads;
mod webhooks;
