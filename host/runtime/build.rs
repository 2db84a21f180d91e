//! Generates the bindings of the contract and the host call recorder from `wit/`, so a new function
//! of the contract needs no manual code in either.

use std::fmt::Write as _;

use contract_codegen::{Capability, CapabilityFunction};

/// Interfaces and functions that never wait; their bindings are synchronous functions.
const WITHOUT_WAITING: [&str; 10] = [
    "calendar",
    "crypto.random-bytes",
    "egress.check",
    "events",
    "jobs.enqueue",
    "jobs.report-progress",
    "links",
    "log",
    "membership.vouch",
    "settings",
];

/// Interfaces and functions that are not recorded: they return the same result on every machine, or
/// no result.
const NOT_RECORDED: [&str; 4] = ["calendar", "crypto.ed25519-verify", "crypto.sha256", "log"];

fn main() {
    let capabilities = contract_codegen::capabilities();
    contract_codegen::write("bindings.rs", &bindings(&capabilities));
    let recorder: String = capabilities.iter().map(recorder).collect();
    contract_codegen::write("host_call_recorder.rs", &recorder);
}

fn bindings(capabilities: &[Capability]) -> String {
    let (mut imports, mut errors) = (String::new(), String::new());
    for name in WITHOUT_WAITING {
        let _ = writeln!(imports, "        \"assurance:area/{name}\": trappable,");
    }
    for Capability { name, .. } in capabilities.iter().filter(|one| one.has_error) {
        let module = name.replace('-', "_");
        let _ = writeln!(
            errors,
            "        \"assurance:area/{name}.error\" => \
             super::capability::CapabilityError<self::assurance::area::{module}::Error>,"
        );
    }
    format!(
        "wasmtime::component::bindgen!({{
    path: \"../../wit\",
    world: \"area\",
    include_component_type: true,
    require_store_data_send: true,
    // For recordings of host calls.
    additional_derives: [serde::Serialize, serde::Deserialize],
    imports: {{\n{imports}        default: async | trappable,\n    }},
    exports: {{ default: async }},
    trappable_error_type: {{\n{errors}    }},
}});\n"
    )
}

/// Generates the implementation of an interface's `Host` trait for `HostCallRecorder`.
fn recorder(capability: &Capability) -> String {
    let module = capability.name.replace('-', "_");
    let mut code = format!("impl {module}::Host for HostCallRecorder<'_> {{\n");
    for function in &capability.functions {
        code += &recorded_function(capability, &module, function);
    }
    if capability.has_error {
        let _ = writeln!(
            code,
            "    fn convert_error(&mut self, error: CapabilityError<{module}::Error>) \
             -> wasmtime::Result<{module}::Error> {{ error.split() }}"
        );
    }
    code + "}\n"
}

fn recorded_function(
    capability: &Capability,
    module: &str,
    function: &CapabilityFunction,
) -> String {
    let is_in = |list: &[&str]| {
        let full_name = format!("{}.{}", capability.name, function.wit_name);
        list.iter().any(|one| *one == capability.name || *one == full_name)
    };
    let (asynchronous, wait) =
        if is_in(&WITHOUT_WAITING) { ("", "") } else { ("async ", ".await") };
    let CapabilityFunction { name, output, .. } = function;
    let (typed, names) = function.signature(|parameter| &parameter.owned);
    let result = if function.fails {
        format!("Result<{output}, CapabilityError<{module}::Error>>")
    } else {
        format!("wasmtime::Result<{output}>")
    };
    let body = if is_in(&NOT_RECORDED) {
        format!("{module}::Host::{name}(self.0, {names}){wait}")
    } else {
        format!("pass_on!(self, {module}::Host, \"{module}.{name}\", {name}({names}){wait})")
    };
    format!("    {asynchronous}fn {name}(&mut self, {typed}) -> {result} {{ {body} }}\n")
}
