//! Types of the contract as Rust names them, in the bindings of host and guest
//! alike.

use wit_parser::{Resolve, Type, TypeDefKind, TypeId, TypeOwner};

/// Follows `type` and `use` to the definition.
fn definition(resolve: &Resolve, mut ty: Type) -> Type {
    while let Type::Id(id) = ty
        && let TypeDefKind::Type(target) = resolve.types[id].kind
    {
        ty = target;
    }
    ty
}

/// The type as a value that its holder owns.
pub(crate) fn owned(resolve: &Resolve, ty: Type) -> String {
    let id = match definition(resolve, ty) {
        Type::Id(id) => id,
        Type::String => return "String".to_owned(),
        // `Bool`, `U8`, `S64`
        primitive => {
            let name = format!("{primitive:?}").to_lowercase();
            return name.strip_prefix('s').map_or(name.clone(), |bits| format!("i{bits}"));
        }
    };
    match &resolve.types[id].kind {
        TypeDefKind::List(item) => format!("Vec<{}>", owned(resolve, *item)),
        TypeDefKind::Option(some) => format!("Option<{}>", owned(resolve, *some)),
        TypeDefKind::Tuple(tuple) => tuple_of(tuple.types.iter().map(|ty| owned(resolve, *ty))),
        TypeDefKind::Result(result) => {
            let or_unit = |ty: Option<Type>| ty.map_or("()".to_owned(), |ty| owned(resolve, ty));
            format!("Result<{}, {}>", or_unit(result.ok), or_unit(result.err))
        }
        _ => path(resolve, id),
    }
}

/// The type as an argument: borrowed if it owns memory.
pub(crate) fn borrowed(resolve: &Resolve, ty: Type) -> String {
    let ty = definition(resolve, ty);
    match ty {
        Type::String => "&str".to_owned(),
        Type::Id(id) => match &resolve.types[id].kind {
            TypeDefKind::List(item) => format!("&[{}]", owned(resolve, *item)),
            TypeDefKind::Option(some) => format!("Option<{}>", borrowed(resolve, *some)),
            TypeDefKind::Tuple(tuple) => {
                tuple_of(tuple.types.iter().map(|ty| borrowed(resolve, *ty)))
            }
            _ if owns_memory(resolve, ty) => format!("&{}", owned(resolve, ty)),
            _ => owned(resolve, ty),
        },
        _ => owned(resolve, ty),
    }
}

/// The type of a success, and whether failures have this error type.
pub(crate) fn output(
    resolve: &Resolve,
    result: Option<Type>,
    error: Option<TypeId>,
) -> (String, bool) {
    let Some(ty) = result else { return ("()".to_owned(), false) };
    if let Type::Id(id) = definition(resolve, ty)
        && let TypeDefKind::Result(result) = &resolve.types[id].kind
        && let Some(Type::Id(err)) = result.err.map(|err| definition(resolve, err))
        && Some(err) == error
    {
        return (result.ok.map_or("()".to_owned(), |ok| owned(resolve, ok)), true);
    }
    (owned(resolve, ty), false)
}

/// Whether a value of the type has a text or a list in it.
fn owns_memory(resolve: &Resolve, ty: Type) -> bool {
    let id = match definition(resolve, ty) {
        Type::Id(id) => id,
        primitive => return primitive == Type::String,
    };
    let parts: Vec<Type> = match &resolve.types[id].kind {
        TypeDefKind::List(_) => return true,
        TypeDefKind::Option(some) => vec![*some],
        TypeDefKind::Record(record) => record.fields.iter().map(|field| field.ty).collect(),
        TypeDefKind::Tuple(tuple) => tuple.types.clone(),
        TypeDefKind::Variant(variant) => variant.cases.iter().filter_map(|case| case.ty).collect(),
        TypeDefKind::Result(result) => result.ok.into_iter().chain(result.err).collect(),
        _ => vec![],
    };
    parts.into_iter().any(|part| owns_memory(resolve, part))
}

/// A record, variant or enum by the interface that defines it.
fn path(resolve: &Resolve, id: TypeId) -> String {
    let definition = &resolve.types[id];
    let known = matches!(
        definition.kind,
        TypeDefKind::Record(_)
            | TypeDefKind::Variant(_)
            | TypeDefKind::Enum(_)
            | TypeDefKind::Flags(_)
    );
    assert!(known, "wit/codegen does not know the type {}", definition.kind.as_str());
    let TypeOwner::Interface(owner) = definition.owner else {
        panic!("a function of an interface uses a type of the world")
    };
    let module = resolve.interfaces[owner].name.as_deref().unwrap_or_default();
    let name = definition.name.as_deref().unwrap_or_default();
    format!("{}::{}", snake_case(module), upper_camel_case(name))
}

fn tuple_of(types: impl Iterator<Item = String>) -> String {
    format!("({})", types.collect::<Vec<_>>().join(", "))
}

pub(crate) fn snake_case(name: &str) -> String {
    name.replace('-', "_")
}

pub(crate) fn upper_camel_case(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_uppercase())
    });
    words.collect()
}
