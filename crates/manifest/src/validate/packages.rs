//! Validates a manifest's packages, and finds the folders into which they are unpacked.

use crate::raw::{RawManifest, RawPackage};
use crate::read::At;
use crate::validate::context::Context;
use runner_experiment::{PackageSpec, Registry};
use runner_files::cache_folder::package_folder;
use runner_lang::diagnostics::Diagnostic;
use runner_types::Span;

/// Validates the packages. Adds the folders of packages in the cache to the project.
pub fn packages(ctx: &mut Context, raw: &RawManifest) -> Vec<PackageSpec> {
    let mut packages = Vec::new();
    for (name, package) in raw.packages.iter().flat_map(|packages| &packages.0) {
        let Some(spec) = spec(ctx, &name.value, package) else { continue };
        match package_folder(&spec.sha256) {
            Ok(folder) if folder.is_dir() => ctx.files.add_package(&spec.name, folder),
            Ok(_) => {
                let message = format!("{} is not in the cache", spec.describe());
                let hint = "`runner run` fetches it, unless --offline forbids it";
                ctx.fault(Diagnostic::at(name.span.clone(), message).label("not fetched").hint(hint));
                ctx.files.add_absent_package(&spec.name);
            }
            Err(why) => {
                let message = format!("the folder of the cache is unknown: {why}");
                ctx.fault(Diagnostic::at(name.span.clone(), message).hint("set RUNNER_CACHE to a folder"));
            }
        }
        packages.push(spec);
    }
    packages
}

fn spec(ctx: &mut Context, name: &str, raw: &At<RawPackage>) -> Option<PackageSpec> {
    let RawPackage { crate_, wheel, version, sha256, license, bytes } = &raw.value;
    let (registry, published) = match (crate_, wheel) {
        (Some(published), None) => (Registry::Crate, published),
        (None, Some(published)) => (Registry::Wheel, published),
        _ => {
            let fault = Diagnostic::at(raw.span.clone(), format!("package `{name}` is not from a registry"));
            ctx.fault(fault.hint("name either a `crate` or a `wheel`"));
            return None;
        }
    };
    // Missing keys were already reported.
    let (version, sha256) = (version.0.as_ref()?, sha256.0.as_ref()?);
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
    };
    let is_hash = |text: &str| text.len() == 64 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    let mut is_right = true;
    let mut expect = |is_so: bool, span: &Span, message: String, hint: &str| {
        if !is_so {
            ctx.fault(Diagnostic::at(span.clone(), message).hint(hint));
            is_right = false;
        }
    };
    for word in [published, version] {
        let message = format!("`{}` is not a package name or version", word.value);
        expect(is_word(&word.value), &word.span, message, "use letters, digits, `.`, `_`, `+` and `-`");
    }
    let message = format!("`{}` is not a SHA-256", sha256.value);
    expect(is_hash(&sha256.value), &sha256.span, message, "write 64 hexadecimal digits in lower case");
    is_right.then(|| PackageSpec {
        name: name.to_owned(),
        registry,
        published: published.value.clone(),
        version: version.value.clone(),
        sha256: sha256.value.clone(),
        license: license.as_ref().map(|license| license.value.clone()),
        bytes: bytes.as_ref().map(|bytes| bytes.value),
    })
}
