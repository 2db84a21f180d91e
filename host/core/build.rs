//! Lists the capabilities of `wit/` for `domain::manifest::Capability`.

use std::fmt::Write as _;

fn main() {
    let mut code = String::from("capabilities! {\n");
    for capability in contract_codegen::capabilities() {
        let _ = writeln!(code, "    /// {}", capability.summary);
        let _ = writeln!(code, "    {} = {:?},", capability.variant, capability.name);
    }
    code.push_str("}\n");
    contract_codegen::write("capabilities.rs", &code);
}
