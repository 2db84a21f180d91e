//! Writes the list of functions in `wit/` for `src/host.rs`, one on each line.

use std::fmt::Write as _;

use contract_codegen::{Capability, CapabilityFunction};

fn main() {
    let mut code = String::from("host_functions! {\n");
    for capability in contract_codegen::capabilities() {
        for function in &capability.functions {
            code += &row(&capability, function);
        }
    }
    code.push_str("}\n");
    contract_codegen::write("host_functions.rs", &code);
}

fn row(capability: &Capability, function: &CapabilityFunction) -> String {
    let mut row = String::new();
    for line in function.docs.lines() {
        let _ = writeln!(row, "    /// {line}");
    }
    let module = capability.name.replace('-', "_");
    let (typed, _) = function.signature(|parameter| &parameter.borrowed);
    let CapabilityFunction { name, output, .. } = function;
    let result =
        if function.fails { format!("Result<{output}, {module}::Error>") } else { output.clone() };
    let capability = &capability.variant;
    let _ =
        writeln!(row, "    {capability} {module}::{name} as {module}_{name}({typed}) -> {result};");
    row
}
