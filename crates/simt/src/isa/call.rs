//! Lowers calls. Arguments and results in registers pass through the locals, like parameters.

use crate::exec::vector::compare;
use crate::exec::{control as flow, device_runtime as runtime, malloc, system};
use crate::isa::decode::{Done, Form, selector};
use crate::isa::memory::{loader, storer};
use crate::mir::builder::{Builder, Symbol};
use crate::mir::{Class, Flow, Inst, Opnd, Work};
use crate::program::CallSite;
use crate::program::aux::{Access, StateSpace};
use ptx_parser::{Operand, ScalarType, Space, Variable};

use ScalarType::{B8, Pred, U64};

/// Offset and size of a value in the locals, in bytes.
type Place = (u32, u32);

/// Element type and number of elements of a value in registers.
type Kind = (ScalarType, u64);

const fn kind(v: &Variable<'_>) -> Kind {
    (v.ty, v.count)
}

/// Lays out consecutive values. Returns their offsets, their end, and their common alignment.
pub fn layout(kinds: impl IntoIterator<Item = (u64, u32)>) -> (Vec<u32>, u64, u32) {
    let (mut offsets, mut end, mut align) = (Vec::new(), 0_u64, 1);
    for (bytes, own) in kinds {
        let at = end.next_multiple_of(u64::from(own.max(1)));
        offsets.push(at.min(u64::from(u32::MAX)) as u32);
        end = at.saturating_add(bytes);
        align = align.max(own);
    }
    (offsets, end, align)
}

/// Returns the elements of a register; only a vector register has several.
fn elements<'a>(b: &mut Builder<'a, '_>, operand: &Operand<'a>) -> Vec<Operand<'a>> {
    if let Operand::Name(name) = *operand
        && let Some(width) = b.width(name)
    {
        return (0..width).map(|k| Operand::Element(name, k)).collect();
    }
    vec![operand.clone()]
}

const fn frame() -> Access {
    Access::ABSOLUTE.union(Access::FRAME).union(Access::to(StateSpace::LOCAL)).with_elements(1)
}

/// Stores a register, or its elements, at an offset in the locals.
pub fn put<'a>(b: &mut Builder<'a, '_>, at: u32, operand: &Operand<'a>, (ty, count): Kind) -> Done {
    let sources = elements(b, operand);
    if sources.len() as u64 != count {
        return Err(format!("elements in the value: expected {count}, found {}", sources.len()));
    }
    for (k, source) in (0_u32..).zip(&sources) {
        let (value, ty) = if ty == Pred {
            let (p, negated) = b.pred(source)?;
            let (value, one, zero) = (Opnd::Reg(b.fresh(Class::Narrow)), u64::from(!negated), u64::from(negated));
            let [one, zero] = [one, zero].map(|bit| b.parts.constants.uniform(bit, false));
            b.emit(selector(b, false), [value, one, zero, p], 1, 0, 0);
            b.uncount_last();
            (value, B8)
        } else {
            (b.src(source, ty)?, ty)
        };
        let run = storer(b, ty)?;
        b.emit(run, [Opnd::None, value], 0, i64::from(at + k * ty.size()), frame().bits());
        b.uncount_last();
    }
    Ok(())
}

/// Loads a register, or its elements, from an offset in the locals.
pub fn take<'a>(b: &mut Builder<'a, '_>, at: u32, operand: &Operand<'a>, (ty, count): Kind) -> Done {
    let targets = elements(b, operand);
    if targets.len() as u64 != count {
        return Err(format!("elements in the register: expected {count}, found {}", targets.len()));
    }
    for (k, target) in (0_u32..).zip(&targets) {
        let d = b.dst(target, ty)?;
        if d == Opnd::None {
            continue;
        }
        let value = if ty == Pred { Opnd::Reg(b.fresh(Class::Narrow)) } else { d };
        let run = loader(b, if ty == Pred { B8 } else { ty }, false)?;
        let o = [value, Opnd::None, Opnd::None, Opnd::None, Opnd::None];
        b.emit(run, o, 0b1111, i64::from(at + k * ty.size()), frame().bits());
        b.uncount_last();
        if ty == Pred {
            let zero = b.parts.constants.uniform(0, false);
            let run = compare(b.isa, |x: u32, y: u32| x != y);
            b.emit(run, [d, Opnd::None, value, zero], 3, 0, 0).work = Work::Decision;
            b.uncount_last();
        }
    }
    Ok(())
}

/// Returns the kind of an argument or result in registers, from the declaration of its parameter or else from the
/// registers themselves.
fn kind_of<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    declared: Option<&Variable<'a>>,
) -> Result<Kind, String> {
    if let Some(v) = declared {
        return Ok(kind(v));
    }
    if let Operand::Name(name) = *operand
        && let Symbol::Vector(_, width, ty) = b.lookup(name)?
    {
        return Ok((ty, u64::from(width)));
    }
    let register = b.register(operand)?;
    register.map(|(_, ty)| (ty, 1)).ok_or_else(|| format!("the type of argument {operand:?} is unknown"))
}

/// Returns the place of the parameter that an operand names, if it names one.
fn parameter<'a>(b: &mut Builder<'a, '_>, operand: &Operand<'a>) -> Option<Place> {
    let Operand::Name(name) = *operand else { return None };
    match b.lookup(name) {
        Ok(Symbol::Local(at, bytes)) => Some((at, bytes)),
        _ => None,
    }
}

/// Stores the arguments that are in registers, and returns the places of all arguments.
fn arguments<'a>(
    b: &mut Builder<'a, '_>,
    args: &[Operand<'a>],
    declared: &[Variable<'a>],
) -> Result<Vec<Place>, String> {
    let mut places = Vec::new();
    for (k, arg) in args.iter().enumerate() {
        if let Some(place) = parameter(b, arg) {
            places.push(place);
            continue;
        }
        let (ty, count) = kind_of(b, arg, declared.get(k))?;
        let bytes = count.saturating_mul(u64::from(ty.size()));
        let at = b.local(bytes, ty.size())?;
        put(b, at, arg, (ty, count))?;
        places.push((at, bytes as u32));
    }
    Ok(places)
}

/// Place of a call's results, and the registers to load from it with their offsets.
type Results<'a, 'i> = (Option<Place>, Vec<(u32, &'i Operand<'a>, Kind)>);

fn results<'a, 'i>(
    b: &mut Builder<'a, '_>,
    returns: &'i [Operand<'a>],
    declared: &[Variable<'a>],
) -> Result<Results<'a, 'i>, String> {
    if let [operand] = returns
        && let Some(place) = parameter(b, operand)
    {
        return Ok((Some(place), Vec::new()));
    }
    if returns.is_empty() {
        return Ok((None, Vec::new()));
    }
    if !declared.is_empty() && declared.len() != returns.len() {
        return Err(format!("{} results, but the function returns {}", returns.len(), declared.len()));
    }
    let mut kinds = Vec::new();
    for (k, operand) in returns.iter().enumerate() {
        if parameter(b, operand).is_some() {
            return Err("multiple results with one in a `.param` variable are not simulated".to_owned());
        }
        kinds.push(kind_of(b, operand, declared.get(k))?);
    }
    let bytes = |&(ty, count): &Kind| count.saturating_mul(u64::from(ty.size()));
    let aligned = kinds.iter().enumerate().map(|(k, (ty, count))| {
        (bytes(&(*ty, *count)), declared.get(k).map_or(ty.size() * *count as u32, |v| v.align))
    });
    let (offsets, end, align) = layout(aligned);
    let at = b.local(end, align)?;
    let taken = returns.iter().zip(kinds).zip(offsets).map(|((operand, kind), offset)| (at + offset, operand, kind));
    Ok((Some((at, end as u32)), taken.collect()))
}

/// Lowers `call`, whose target is a function of the module, a system function, or an address.
pub fn call<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("uni");
    f.done()?;
    let call = f.ins.call.as_ref().ok_or("the operands of the call are missing")?;
    let target = b.lookup(call.target)?;
    let callee = match target {
        Symbol::Function(number) => b.globals.definitions.get(number as usize).copied().flatten(),
        _ => None,
    };
    let (params, declared) = callee.map_or((&[][..], &[][..]), |c| (&c.params[..], &c.returns[..]));
    if callee.is_some() && params.len() != call.args.len() {
        return Err(format!("{} arguments, but `{}` takes {}", call.args.len(), call.target, params.len()));
    }
    let args = arguments(b, &call.args, params)?;
    let (result, taken) = results(b, &call.returns, declared)?;
    let argument = |k: usize| args.get(k).map_or(0, |a: &Place| i64::from(a.0));
    let out = result.map_or(u32::MAX, |r| r.0);
    let (target, function) = match target {
        Symbol::Function(number) if b.globals.is_defined(number) => (Opnd::None, Some(b.parts.reach(number))),
        Symbol::Function(_) => {
            match call.target {
                "vprintf" => b.emit::<0>(system::printf, [], 0, argument(0) | argument(1) << 32, out),
                "malloc" => b.emit::<0>(malloc::malloc, [], 0, argument(0), out),
                "__cuda_syscall_aligned_malloc" => {
                    b.emit::<0>(malloc::aligned_malloc, [], 0, argument(0) | argument(1) << 32, out)
                }
                "free" => b.emit::<0>(malloc::free, [], 0, argument(0), 0),
                "__assertfail" => {
                    b.emit::<0>(system::assert_failed, [], 0, argument(0) | argument(1) << 32, argument(2) as u32)
                }
                name => device_runtime(b, name, args, result)?,
            };
            return taken.into_iter().try_for_each(|(at, operand, kind)| take(b, at, operand, kind));
        }
        Symbol::Register(..) => {
            b.parts.indirect = true;
            (b.src(&Operand::Name(call.target), U64)?, None)
        }
        _ => return Err(format!("`{}` cannot be called", call.target)),
    };
    let site = b.parts.calls.len() as i64;
    b.parts.calls.push(CallSite { function, args, result });
    b.emit(flow::call, [target], 0, site, 0).flow = Flow::Call;
    taken.into_iter().try_for_each(|(at, operand, kind)| take(b, at, operand, kind))
}

/// Lowers a call to the device runtime.
fn device_runtime<'b>(
    b: &'b mut Builder<'_, '_>,
    symbol: &str,
    args: Vec<Place>,
    result: Option<Place>,
) -> Result<&'b mut Inst, String> {
    let service = runtime::find(symbol, args.iter().map(|a| a.1)).unwrap_or_else(|| {
        Err(format!(
            "`{symbol}` is neither defined here nor a system function: add the file that defines it to `source`"
        ))
    })?;
    let site = b.parts.calls.len() as i64;
    b.parts.calls.push(CallSite { function: None, args, result });
    Ok(b.emit::<0>(runtime::call, [], 0, site, service))
}

/// The parameters and results of a device function, which are in its locals.
#[derive(Debug, Default)]
pub struct Signature {
    pub params: Vec<Place>,
    pub result: Option<Place>,
}

/// Declares the parameters of a device function and loads those that are in registers.
pub fn enter<'a>(
    b: &mut Builder<'a, '_>,
    params: &[Variable<'a>],
    returns: &[Variable<'a>],
) -> Result<Signature, String> {
    let mut signature = Signature::default();
    for v in params {
        let at = b.local(v.size(), v.align)?;
        signature.params.push((at, v.size() as u32));
        declare(b, v, at)?;
        if v.space == Space::Reg {
            take(b, at, &Operand::Name(v.name), kind(v))?;
        }
    }
    if !returns.is_empty() {
        let (offsets, end, align) = layout(returns.iter().map(|v| (v.size(), v.align)));
        let at = b.local(end, align)?;
        signature.result = Some((at, end as u32));
        for (v, offset) in returns.iter().zip(offsets) {
            declare(b, v, at + offset)?;
        }
    }
    Ok(signature)
}

fn declare<'a>(b: &mut Builder<'a, '_>, v: &Variable<'a>, at: u32) -> Done {
    if v.space == Space::Reg {
        return b.declare_registers(v);
    }
    b.define(v.name, Symbol::Local(at, v.size() as u32));
    Ok(())
}

/// At the end of a device function, stores the results that are in registers.
pub fn leave<'a>(b: &mut Builder<'a, '_>, returns: &[Variable<'a>], signature: &Signature) -> Done {
    let Some((at, _)) = signature.result else { return Ok(()) };
    let (offsets, ..) = layout(returns.iter().map(|v| (v.size(), v.align)));
    for (v, offset) in returns.iter().zip(offsets).filter(|(v, _)| v.space == Space::Reg) {
        put(b, at + offset, &Operand::Name(v.name), kind(v))?;
    }
    Ok(())
}
