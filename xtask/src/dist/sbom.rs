//! Software bill of materials (SBOM): the crates of the binary in the format of CycloneDX 1.6.

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::crates::{Crate, Crates};
use super::platform::Platform;
use super::sums::hex;

/// Name of the crate that is the program itself.
const PROGRAM: &str = "mcpd-cli";

/// Renders the SBOM as JSON.
///
/// # Errors
///
/// Fails if the time is out of range.
pub(crate) fn render(crates: &Crates, platform: &Platform, time: u64) -> anyhow::Result<String> {
    let libraries = crates.all.iter().filter(|one| one.name != PROGRAM);
    let components: Vec<_> = libraries.map(component).collect();
    let dependencies: Vec<_> = crates
        .all
        .iter()
        .map(|one| {
            let names = one
                .dependencies
                .iter()
                .map(|index| reference(&crates.all[*index]));
            json!({"ref": reference(one), "dependsOn": names.collect::<Vec<_>>()})
        })
        .collect();
    let program = crates.all.iter().find(|one| one.name == PROGRAM);
    let mut bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": Timestamp::from_second(i64::try_from(time)?)?.to_string(),
            "component": {
                "type": "application",
                "bom-ref": program.map(reference),
                "name": "mcpd",
                "version": crates.version,
                "licenses": [{"expression": program.and_then(|one| one.licence.clone())}],
                "properties": [{"name": "cargo:target", "value": platform.triple}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    bill["serialNumber"] = serial_number(&bill).into();
    Ok(format!("{bill:#}\n"))
}

fn component(one: &Crate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(one),
        "name": one.name,
        "version": one.version,
    });
    if let Some(description) = &one.description {
        component["description"] = description.as_str().into();
    }
    if let Some(sum) = &one.sum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    if let Some(licence) = &one.licence {
        component["licenses"] = json!([{"expression": licence}]);
    }
    if !one.is_own {
        component["purl"] = reference(one).into();
    }
    if let Some(repository) = &one.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// Returns the package URL, which names a crate in the whole document.
fn reference(one: &Crate) -> String {
    format!("pkg:cargo/{}@{}", one.name, one.version)
}

/// Returns a UUID (version 8) of the content, as a random one would differ in every build.
fn serial_number(bill: &Value) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(bill.to_string())[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    format!("urn:uuid:{}", parts.join("-"))
}
