//! End-to-end tests, a module a subject. One program, so that it is linked
//! once and its tests run side by side.

mod assistant;
mod audits;
mod catalog;
mod context;
mod contract;
mod control_room;
mod dependencies;
mod deploy;
mod durability;
mod evidence;
mod fuzz;
mod groups;
mod hostile;
mod identity;
mod invitations;
mod notes;
mod openapi;
mod order;
mod ownership;
mod protocol;
mod questionnaires;
mod queue;
mod rates;
mod refusals;
mod remediation;
mod repohost;
mod requests;
mod schedules;
mod sign_in;
mod story;
mod support;
mod swap;
mod tour;
mod uploads;
mod webhooks;
