//! Lowers branches, calls, barriers, and operations across the lanes of a warp.

use crate::exec::arith::{canon, max32, min32};
use crate::exec::context::Handler;
use crate::exec::{collective, control as flow, shuffle as lanes, system};
use crate::isa::cluster;
use crate::isa::decode::{Done, Form, apply, no_type};
use crate::mir::builder::{Builder, Symbol};
use crate::mir::{Class, Flow, Label, Opnd};
use crate::program::aux::{Barrier, Branch, Fence, Vote};
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B32, F32, Pred, U32};

fn label(b: &mut Builder<'_, '_>, operand: &Operand<'_>) -> Result<Label, String> {
    let Operand::Name(name) = *operand else { return Err("expected a label".to_owned()) };
    match b.lookup(name)? {
        Symbol::Label(label) => Ok(label),
        _ => Err(format!("`{name}` is not a label")),
    }
}

pub fn bra<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("uni");
    f.done()?;
    let target = label(b, f.operand(0)?)?;
    if let Some(guard) = f.ins.guard {
        let (register, negated) = b.guard(guard)?;
        let aux = if negated { Branch::NEGATED.bits() } else { 0 };
        b.emit(flow::bra_if, [Opnd::Reg(register)], 0, 0, aux).flow = Flow::Branch(target);
    } else {
        b.emit::<0>(flow::bra, [], 0, 0, 0).flow = Flow::Jump(target);
    }
    Ok(())
}

pub fn brx<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("idx");
    f.flag("uni");
    f.done()?;
    let index = b.src(f.operand(0)?, U32)?;
    let Operand::Name(name) = *f.operand(1)? else { return Err("expected a table".to_owned()) };
    let names = b.table(name).ok_or_else(|| format!("`{name}` is not a table of targets"))?;
    let targets = names.iter().map(|n| label(b, &Operand::Name(n))).collect::<Result<Vec<_>, _>>()?;
    b.emit(flow::branch_table, [index], 0, 0, 0).flow = Flow::Table(targets);
    Ok(())
}

pub fn exit<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    b.emit::<0>(flow::exit, [], 0, 0, 0).flow = Flow::End;
    f.done()
}

pub fn ret<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("uni");
    let end = b.end;
    b.emit::<0>(flow::to_end, [], 0, 0, 0).flow = Flow::Jump(end);
    f.done()
}

pub fn trap<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    b.emit::<0>(flow::trap, [], 0, 0, 0).flow = Flow::End;
    f.done()
}

pub fn nop<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["global", "local", "L1", "L2", "mask", "L2::evict_last", "L2::evict_normal"]);
    f.ignore(&["wait", "launch_dependents"]);
    b.emit::<0>(system::nothing, [], 0, 0, 0);
    f.done()
}

pub fn fence<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let device = f.one_of(&["gpu", "sys", "gl"]).is_some();
    let block = f.flag("cta");
    let half = f.one_of(&["acquire", "release"]);
    let proxy = f.flag("proxy");
    f.ignore(&["sc", "acq_rel", "acquire", "release", "relaxed", "cta", "cluster"]);
    f.ignore(&["alias", "mbarrier_init", "sync_restrict::shared::cta", "sync_restrict::shared::cluster"]);
    let bulk = f.one_of(&["async", "async::generic"]).is_some();
    let shared = !f.flag("global");
    f.ignore(&["shared::cta", "shared::cluster"]);
    let mut flags = Fence::empty();
    flags.set(Fence::DEVICE, device);
    flags.set(Fence::BULK, bulk && shared);
    flags.set(Fence::ACQUIRE, !proxy && half != Some("release"));
    flags.set(Fence::RELEASE, !proxy && half != Some("acquire"));
    flags.set(Fence::BLOCK_SCOPE, block);
    b.emit::<0>(system::fence, [], 0, 0, flags.bits());
    f.done()
}

pub fn nanosleep<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ty()?;
    b.emit::<0>(system::pause, [], 0, 0, 0);
    f.done()
}

/// Lowers `bar` and `barrier`.
pub fn barrier<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let aligned = f.ins.opcode.starts_with("bar.") || f.flag("aligned");
    f.flag("cta");
    if f.flag("cluster") {
        return cluster::barrier(b, f);
    }
    if f.flag("warp") {
        f.flag("sync");
        let mask = b.src(f.operand(0)?, U32)?;
        b.emit(collective::warp_sync, [mask], 0, 0, 0);
        return f.done();
    }
    let mut flags = Barrier::empty();
    flags.set(Barrier::ALIGNED, aligned);
    if f.flag("red") {
        return barrier_red(b, f, flags);
    }
    if f.flag("arrive") {
        flags |= Barrier::ARRIVE;
    } else if !f.flag("sync") {
        return Err("expected `.sync`, `.arrive` or `.red`".to_owned());
    }
    let id = b.src(f.operand(0)?, U32)?;
    let count = if f.count() > 1 { b.src(f.operand(1)?, U32)? } else { Opnd::None };
    flags.set(Barrier::WITH_COUNT, f.count() > 1);
    b.emit(collective::barrier, [id, count], 0, 0, flags.bits());
    f.done()
}

fn barrier_red<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, mut flags: Barrier) -> Done {
    let operation = f.one_of(&["and", "or", "popc"]).ok_or("expected an operation")?;
    let ty = f.ty()?;
    f.done()?;
    let id = b.src(f.operand(1)?, U32)?;
    let counted = f.count() > 3;
    let count = if counted { b.src(f.operand(2)?, U32)? } else { Opnd::None };
    let (p, negated) = b.pred(f.operand(f.count() - 1)?)?;
    flags |= Barrier::WITH_VOTE;
    flags.set(Barrier::WITH_COUNT, counted);
    flags.set(Barrier::NEGATED_VOTE, negated);
    b.emit(collective::barrier, [id, count, p], 0, 0, flags.bits());
    let d = b.dst(f.operand(0)?, ty)?;
    let how = match operation {
        "and" => collective::RED_AND,
        "or" => collective::RED_OR,
        _ => collective::RED_POPC,
    };
    b.emit(collective::barrier_result, [d], 1, 0, how);
    Ok(())
}

/// Returns the member mask of a `shfl` or `vote`. Without `.sync`, in code for older targets, the active lanes take
/// part.
fn members<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, at: usize) -> Result<Opnd, String> {
    if f.flag("sync") {
        return b.src(f.operand(at)?, B32);
    }
    if !b.globals.takes_unsynchronised() {
        return Err("since PTX 6.4, sm_70 and later need the form with `.sync`".to_owned());
    }
    let mask = Opnd::Reg(b.fresh(Class::Narrow));
    b.emit(collective::active_mask, [mask], 1, 0, 0);
    b.uncount_last();
    Ok(mask)
}

pub fn shuffle<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mask = members(b, f, 4)?;
    let mode = match f.one_of(&["up", "down", "bfly", "idx"]) {
        Some("up") => lanes::UP,
        Some("down") => lanes::DOWN,
        Some("bfly") => lanes::BUTTERFLY,
        Some(_) => lanes::INDEX,
        None => return Err("expected a mode".to_owned()),
    };
    f.ty()?;
    f.done()?;
    let (d, p) = outputs(b, f.operand(0)?, B32)?;
    let (x, lane) = (b.src(f.operand(1)?, B32)?, b.src(f.operand(2)?, B32)?);
    let clamp = b.src(f.operand(3)?, B32)?;
    b.emit(lanes::handler(b.isa), [d, p, x, lane, clamp, mask], 3, 0, mode);
    Ok(())
}

/// Returns the destinations of `d` or `d|p`.
fn outputs<'a>(b: &mut Builder<'a, '_>, operand: &Operand<'a>, ty: ScalarType) -> Result<(Opnd, Opnd), String> {
    match *operand {
        Operand::Pair(d, p) => {
            let d = if d == "_" { Opnd::None } else { b.dst(&Operand::Name(d), ty)? };
            let p = if p == "_" { Opnd::None } else { b.dst(&Operand::Name(p), Pred)? };
            Ok((d, p))
        }
        ref d => Ok((b.dst(d, ty)?, Opnd::None)),
    }
}

pub fn vote<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mask = members(b, f, 2)?;
    let mode = match f.one_of(&["all", "any", "uni", "ballot"]) {
        Some("all") => collective::ALL,
        Some("any") => collective::ANY,
        Some("uni") => collective::UNIFORM,
        Some(_) => collective::BALLOT,
        None => return Err("expected a mode".to_owned()),
    };
    let ty = f.ty()?;
    f.done()?;
    let d = b.dst(f.operand(0)?, ty)?;
    let (p, negated) = b.pred(f.operand(1)?)?;
    b.emit(collective::vote, [d, p, mask], 1, 0, mode | if negated { Vote::NEGATED.bits() } else { 0 });
    Ok(())
}

pub fn matching<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("sync");
    let all = f.flag("all");
    f.flag("any");
    let ty = f.ty()?;
    f.done()?;
    let (d, p) = outputs(b, f.operand(0)?, B32)?;
    let (x, mask) = (b.src(f.operand(1)?, ty)?, b.src(f.operand(2)?, B32)?);
    b.emit(collective::matching, [d, p, x, mask], 3, i64::from(ty.size() == 8), u32::from(all));
    Ok(())
}

pub fn redux<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("sync");
    let operation = f.one_of(&["add", "min", "max", "and", "or", "xor"]).ok_or("expected an operation")?;
    let (abs, nan) = (f.flag("abs"), f.flag("NaN"));
    let ty = f.ty()?;
    f.done()?;
    let run = match (operation, ty.is_signed()) {
        _ if ty == F32 => float_reducer(operation, abs, nan)?,
        _ if abs || nan => return Err("`.abs` and `.NaN` are for f32".to_owned()),
        ("add", _) => collective::reducer(u32::wrapping_add),
        ("and", _) => collective::reducer(|x: u32, y: u32| x & y),
        ("or", _) => collective::reducer(|x: u32, y: u32| x | y),
        ("xor", _) => collective::reducer(|x: u32, y: u32| x ^ y),
        ("min", true) => collective::reducer(|x: u32, y: u32| (x as i32).min(y as i32) as u32),
        ("max", true) => collective::reducer(|x: u32, y: u32| (x as i32).max(y as i32) as u32),
        ("min", false) => collective::reducer(|x: u32, y: u32| x.min(y)),
        _ => collective::reducer(|x: u32, y: u32| x.max(y)),
    };
    if ty.size() != 4 || (ty.is_float() && ty != F32) {
        return no_type(ty);
    }
    apply(b, f, [ty, ty, B32], run)
}

/// Returns the handler of `redux` on floats. NaNs are canonicalised first, so that even the NaN of a single lane
/// becomes canonical.
fn float_reducer(operation: &str, abs: bool, nan: bool) -> Result<Handler, String> {
    macro_rules! reducer {
        ($pick:expr) => {{
            let pick = |x: u32, y: u32| $pick(f32::from_bits(x), f32::from_bits(y)).to_bits();
            if abs {
                collective::mapped_reducer(|x: u32| canon(f32::from_bits(x).abs()).to_bits(), pick)
            } else {
                collective::mapped_reducer(|x: u32| canon(f32::from_bits(x)).to_bits(), pick)
            }
        }};
    }
    Ok(match (operation, nan) {
        ("min", false) => reducer!(min32),
        ("max", false) => reducer!(max32),
        ("min", true) => reducer!(|x: f32, y: f32| if x.is_nan() {
            x
        } else if y.is_nan() {
            y
        } else {
            min32(x, y)
        }),
        ("max", true) => reducer!(|x: f32, y: f32| if x.is_nan() {
            x
        } else if y.is_nan() {
            y
        } else {
            max32(x, y)
        }),
        _ => return Err("f32 has only `.min` and `.max`".to_owned()),
    })
}

pub fn elect<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if !f.flag("sync") {
        return Err("expected `.sync`".to_owned());
    }
    f.done()?;
    let (d, p) = outputs(b, f.operand(0)?, B32)?;
    let mask = b.src(f.operand(1)?, B32)?;
    b.emit(collective::elect, [d, p, mask], 3, 0, 0);
    Ok(())
}

pub fn activemask<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("b32");
    f.done()?;
    let d = b.dst(f.operand(0)?, B32)?;
    b.emit(collective::active_mask, [d], 1, 0, 0);
    Ok(())
}
