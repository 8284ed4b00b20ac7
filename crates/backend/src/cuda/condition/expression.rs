//! Translates an expression to PTX. Rejects expressions whose value could differ from the host's.

use std::fmt::Write as _;

use crate::{Condition, Read};
use runner_lang::{Function, Kind, Node, Operator, Program};
use runner_types::{ElementType, Value};

/// Instructions that branch to the label `no_value` if the expression has no value.
pub(super) struct Translated {
    pub text: String,
    /// Register declarations, except `%bits`, `%address`, `%word` and `%half`.
    pub registers: String,
    /// Predicate that holds the condition's result.
    pub holds: String,
}

/// Translates the expression; the error says what cannot be translated.
pub(super) fn translate(condition: &Condition) -> Result<Translated, String> {
    let mut code = Code { condition, text: String::new(), registers: [0; 4], labels: 0 };
    for (index, read) in condition.reads.iter().enumerate() {
        code.load(index, read.element);
    }
    let root = code.node(condition.program.root())?;
    let holds = code.bool(root)?;
    let declared = |((_, class, name), count): (&(Class, &str, &str), usize)| {
        format!("    .reg .{class} %{name}<{}>;\n", count + 1)
    };
    let registers = Class::ALL.iter().zip(code.registers).map(declared).collect();
    Ok(Translated { text: code.text, registers, holds })
}

/// An operand: known in advance, or in a register.
#[derive(Clone)]
enum Operand {
    Known(Value),
    Int(String),
    Float(String),
    Bool(String),
}

struct Code<'a> {
    condition: &'a Condition,
    text: String,
    /// Number of registers per [`Class`].
    registers: [usize; 4],
    labels: usize,
}

#[derive(Clone, Copy)]
enum Class {
    Int,
    Float,
    Bool,
    Single,
}

impl Class {
    const ALL: [(Self, &'static str, &'static str); 4] =
        [(Self::Int, "b64", "i"), (Self::Float, "f64", "f"), (Self::Bool, "pred", "p"), (Self::Single, "f32", "s")];
}

impl Code<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn register(&mut self, class: Class) -> String {
        let count = &mut self.registers[class as usize];
        *count += 1;
        format!("%{}{}", Class::ALL[class as usize].2, *count - 1)
    }

    /// Emits an instruction and returns its destination register. `parts` are the other operands.
    fn emit(&mut self, class: Class, instruction: &str, parts: &[&str]) -> String {
        let register = self.register(class);
        self.line(&format!("{instruction} {register}, {};", parts.join(", ")));
        register
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("part_{}", self.labels)
    }

    fn place(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:");
    }

    /// Branches to `no_value` if the predicate holds.
    fn fault_if(&mut self, holds: &str) {
        self.line(&format!("@{holds} bra no_value;"));
    }

    fn fault_unless(&mut self, holds: &str) {
        self.line(&format!("@!{holds} bra no_value;"));
    }

    /// Loads an element's bits, as the host reads them, into the `%bits` register with this index.
    fn load(&mut self, index: usize, element: ElementType) {
        let width = 8 * element.size();
        self.line(&format!("ld.param.u64 %address, [read_{index}];"));
        self.line("cvta.to.global.u64 %address, %address;");
        self.line(&format!("ld.global.u{width} %bits{index}, [%address];"));
    }

    /// Decodes an element.
    fn read(&mut self, index: usize, element: ElementType) -> Operand {
        let bits = format!("%bits{index}");
        match element {
            ElementType::I8 | ElementType::I16 | ElementType::I32 => {
                let unused = (64 - 8 * element.size()).to_string();
                let high = self.emit(Class::Int, "shl.b64", &[&bits, &unused]);
                Operand::Int(self.emit(Class::Int, "shr.s64", &[&high, &unused]))
            }
            ElementType::I64 => Operand::Int(bits),
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
                let most = self.integer(i64::MAX);
                Operand::Int(self.emit(Class::Int, "min.u64", &[&bits, &most]))
            }
            ElementType::F16 => {
                self.line(&format!("cvt.u16.u64 %half, {bits};"));
                let single = self.emit(Class::Single, "cvt.f32.f16", &["%half"]);
                Operand::Float(self.emit(Class::Float, "cvt.f64.f32", &[&single]))
            }
            ElementType::Bf16 | ElementType::F32 => {
                let shift = if element == ElementType::F32 { "0" } else { "16" };
                self.line(&format!("cvt.u32.u64 %word, {bits};"));
                self.line(&format!("shl.b32 %word, %word, {shift};"));
                let single = self.emit(Class::Single, "mov.b32", &["%word"]);
                Operand::Float(self.emit(Class::Float, "cvt.f64.f32", &[&single]))
            }
            ElementType::F64 => Operand::Float(self.emit(Class::Float, "mov.b64", &[&bits])),
        }
    }

    fn integer(&mut self, value: i64) -> String {
        self.emit(Class::Int, "mov.b64", &[&format!("0x{value:016x}")])
    }

    fn double(&mut self, value: f64) -> String {
        self.emit(Class::Float, "mov.f64", &[&format!("0d{:016X}", value.to_bits())])
    }

    fn truth(&mut self, value: bool) -> String {
        self.line(&format!("mov.u32 %word, {};", u8::from(value)));
        self.emit(Class::Bool, "setp.ne.u32", &["%word", "0"])
    }

    fn int(&mut self, operand: Operand) -> Result<String, String> {
        match operand {
            Operand::Int(register) => Ok(register),
            Operand::Known(Value::Int(value)) => Ok(self.integer(value)),
            other => Err(format!("expected an integer, not {}", other.kind())),
        }
    }

    fn float(&mut self, operand: Operand) -> Result<String, String> {
        match operand {
            Operand::Float(register) => Ok(register),
            Operand::Int(register) => Ok(self.emit(Class::Float, "cvt.rn.f64.s64", &[&register])),
            Operand::Known(Value::Float(value)) => Ok(self.double(value)),
            Operand::Known(Value::Int(value)) => Ok(self.double(value as f64)),
            other => Err(format!("expected a number, not {}", other.kind())),
        }
    }

    fn bool(&mut self, operand: Operand) -> Result<String, String> {
        match operand {
            Operand::Bool(register) => Ok(register),
            Operand::Known(Value::Bool(value)) => Ok(self.truth(value)),
            other => Err(format!("expected a bool, not {}", other.kind())),
        }
    }

    /// Requires a float to be finite.
    fn finite(&mut self, value: String) -> Operand {
        let size = self.emit(Class::Float, "abs.f64", &[&value]);
        let infinite = self.double(f64::INFINITY);
        let fits = self.emit(Class::Bool, "setp.lt.f64", &[&size, &infinite]);
        self.fault_unless(&fits);
        Operand::Float(value)
    }

    fn node(&mut self, node: &Node) -> Result<Operand, String> {
        let Condition { program, scope, reads } = self.condition;
        let is_read = |read: &Read| node.place_of(&read.name).is_some();
        if !reads.iter().any(is_read) {
            let part = || format!("`{}` has no value", program.part(node));
            return Program::constant(node, scope).map(Operand::Known).ok_or_else(part);
        }
        match &node.kind {
            Kind::Literal(value) => Ok(Operand::Known(value.clone())),
            Kind::Name(name) => {
                let found = reads.iter().enumerate().find(|(_, read)| read.name == *name);
                let (index, read) = found.ok_or_else(|| format!("`{name}` has no value"))?;
                Ok(self.read(index, read.element))
            }
            Kind::Negate(inner) => {
                let inner = self.node(inner)?;
                self.signed(inner, "neg")
            }
            Kind::Not(inner) => {
                let inner = self.node(inner)?;
                let inner = self.bool(inner)?;
                Ok(Operand::Bool(self.emit(Class::Bool, "not.pred", &[&inner])))
            }
            Kind::Binary(operator, sides) => {
                let [left, right] = &**sides;
                let (left, right) = (self.node(left)?, self.node(right)?);
                self.binary(*operator, left, right)
            }
            Kind::And(parts) => self.chain(parts, false),
            Kind::Or(parts) => self.chain(parts, true),
            Kind::In(value, list) => self.one_of(value, list),
            Kind::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    /// Evaluates operands until one equals `ends_at`.
    fn chain(&mut self, parts: &[Node], ends_at: bool) -> Result<Operand, String> {
        let (result, end) = (self.truth(!ends_at), self.label());
        let sign = if ends_at { "" } else { "!" };
        for part in parts {
            let part = self.node(part)?;
            let is_last = matches!(part, Operand::Known(Value::Bool(value)) if value == ends_at);
            let part = self.bool(part)?;
            self.line(&format!("and.pred {result}, {part}, {part};"));
            self.line(&format!("@{sign}{result} bra {end};"));
            if is_last {
                break;
            }
        }
        self.place(&end);
        Ok(Operand::Bool(result))
    }

    fn one_of(&mut self, value: &Node, list: &[Node]) -> Result<Operand, String> {
        let value = self.node(value)?;
        let (result, end) = (self.truth(false), self.label());
        for item in list {
            let item = self.node(item)?;
            let equal = self.equal(value.clone(), item)?;
            self.line(&format!("and.pred {result}, {equal}, {equal};"));
            self.line(&format!("@{result} bra {end};"));
        }
        self.place(&end);
        Ok(Operand::Bool(result))
    }

    fn binary(&mut self, operator: Operator, left: Operand, right: Operand) -> Result<Operand, String> {
        match operator {
            Operator::Equal => Ok(Operand::Bool(self.equal(left, right)?)),
            Operator::NotEqual => {
                let equal = self.equal(left, right)?;
                Ok(Operand::Bool(self.emit(Class::Bool, "not.pred", &[&equal])))
            }
            Operator::Less => self.order("lt", left, right),
            Operator::LessEqual => self.order("le", left, right),
            Operator::Greater => self.order("gt", left, right),
            Operator::GreaterEqual => self.order("ge", left, right),
            _ if left.is_int() && right.is_int() => {
                let (left, right) = (self.int(left)?, self.int(right)?);
                self.integers(operator, &left, &right)
            }
            _ => {
                let (left, right) = (self.float(left)?, self.float(right)?);
                self.floats(operator, &left, &right)
            }
        }
    }

    fn equal(&mut self, left: Operand, right: Operand) -> Result<String, String> {
        if left.is_int() && right.is_int() {
            let (left, right) = (self.int(left)?, self.int(right)?);
            return Ok(self.emit(Class::Bool, "setp.eq.s64", &[&left, &right]));
        }
        if left.is_bool() && right.is_bool() {
            let (left, right) = (self.bool(left)?, self.bool(right)?);
            let differ = self.emit(Class::Bool, "xor.pred", &[&left, &right]);
            return Ok(self.emit(Class::Bool, "not.pred", &[&differ]));
        }
        let (left, right) = (self.float(left)?, self.float(right)?);
        // A NaN equals itself, as on the host.
        let same = self.emit(Class::Bool, "setp.eq.f64", &[&left, &right]);
        let (left, right) = (self.emit(Class::Int, "mov.b64", &[&left]), self.emit(Class::Int, "mov.b64", &[&right]));
        let same_bits = self.emit(Class::Bool, "setp.eq.s64", &[&left, &right]);
        Ok(self.emit(Class::Bool, "or.pred", &[&same, &same_bits]))
    }

    fn order(&mut self, relation: &str, left: Operand, right: Operand) -> Result<Operand, String> {
        if left.is_int() && right.is_int() {
            let (left, right) = (self.int(left)?, self.int(right)?);
            return Ok(Operand::Bool(self.emit(Class::Bool, &format!("setp.{relation}.s64"), &[&left, &right])));
        }
        let (left, right) = (self.float(left)?, self.float(right)?);
        let unordered = self.emit(Class::Bool, "setp.nan.f64", &[&left, &right]);
        self.fault_if(&unordered);
        Ok(Operand::Bool(self.emit(Class::Bool, &format!("setp.{relation}.f64"), &[&left, &right])))
    }

    fn integers(&mut self, operator: Operator, a: &str, b: &str) -> Result<Operand, String> {
        let result = match operator {
            Operator::Add | Operator::Subtract => {
                let is_sum = operator == Operator::Add;
                let result = self.emit(Class::Int, if is_sum { "add.s64" } else { "sub.s64" }, &[a, b]);
                let changed = self.emit(Class::Int, "xor.b64", &[a, &result]);
                let other = self.emit(Class::Int, "xor.b64", &[b, if is_sum { &result } else { a }]);
                let overflow = self.emit(Class::Int, "and.b64", &[&changed, &other]);
                let overflow = self.emit(Class::Bool, "setp.lt.s64", &[&overflow, "0"]);
                self.fault_if(&overflow);
                result
            }
            Operator::Multiply => self.product(a, b),
            Operator::Divide | Operator::Remainder => {
                let zero = self.emit(Class::Bool, "setp.eq.s64", &[b, "0"]);
                self.fault_if(&zero);
                let least = self.integer(i64::MIN);
                let is_least = self.emit(Class::Bool, "setp.eq.s64", &[a, &least]);
                let is_minus_one = self.emit(Class::Bool, "setp.eq.s64", &[b, "-1"]);
                let overflow = self.emit(Class::Bool, "and.pred", &[&is_least, &is_minus_one]);
                self.fault_if(&overflow);
                self.emit(Class::Int, if operator == Operator::Divide { "div.s64" } else { "rem.s64" }, &[a, b])
            }
            Operator::ShiftLeft | Operator::ShiftRight => {
                let beyond = self.emit(Class::Bool, "setp.gt.u64", &[b, "62"]);
                self.fault_if(&beyond);
                self.line(&format!("cvt.u32.u64 %word, {b};"));
                if operator == Operator::ShiftRight {
                    self.emit(Class::Int, "shr.s64", &[a, "%word"])
                } else {
                    let one = self.integer(1);
                    let factor = self.emit(Class::Int, "shl.b64", &[&one, "%word"]);
                    self.product(a, &factor)
                }
            }
            other => return Err(format!("`{}` of a value that a kernel wrote", other.symbol())),
        };
        Ok(Operand::Int(result))
    }

    /// Product of two integers; an overflow has no value.
    fn product(&mut self, a: &str, b: &str) -> String {
        let low = self.emit(Class::Int, "mul.lo.s64", &[a, b]);
        let high = self.emit(Class::Int, "mul.hi.s64", &[a, b]);
        let sign = self.emit(Class::Int, "shr.s64", &[&low, "63"]);
        let overflow = self.emit(Class::Bool, "setp.ne.s64", &[&high, &sign]);
        self.fault_if(&overflow);
        low
    }

    fn floats(&mut self, operator: Operator, a: &str, b: &str) -> Result<Operand, String> {
        let instruction = match operator {
            Operator::Add => "add.rn.f64",
            Operator::Subtract => "sub.rn.f64",
            Operator::Multiply => "mul.rn.f64",
            Operator::Divide => {
                let none = self.double(0.0);
                let zero = self.emit(Class::Bool, "setp.eq.f64", &[b, &none]);
                self.fault_if(&zero);
                "div.rn.f64"
            }
            other => return Err(format!("`{}` of floats that a kernel wrote", other.symbol())),
        };
        let result = self.emit(Class::Float, instruction, &[a, b]);
        Ok(self.finite(result))
    }

    /// Negation or absolute value; an overflow has no value.
    fn signed(&mut self, operand: Operand, instruction: &str) -> Result<Operand, String> {
        if operand.is_int() {
            let value = self.int(operand)?;
            let least = self.integer(i64::MIN);
            let overflow = self.emit(Class::Bool, "setp.eq.s64", &[&value, &least]);
            self.fault_if(&overflow);
            return Ok(Operand::Int(self.emit(Class::Int, &format!("{instruction}.s64"), &[&value])));
        }
        let value = self.float(operand)?;
        Ok(Operand::Float(self.emit(Class::Float, &format!("{instruction}.f64"), &[&value])))
    }

    fn call(&mut self, function: Function, arguments: &[Node]) -> Result<Operand, String> {
        match (function, arguments) {
            (Function::Select, [condition, yes, no]) => self.select(condition, yes, no),
            (Function::Min | Function::Max, [first, rest @ ..]) => {
                let mut best = self.node(first)?;
                for argument in rest {
                    let argument = self.node(argument)?;
                    best = self.extreme(function.name(), best, argument)?;
                }
                Ok(best)
            }
            (Function::Abs, [value]) => {
                let value = self.node(value)?;
                self.signed(value, "abs")
            }
            (Function::Sqrt, [value]) => {
                let value = self.node(value)?;
                let (value, none) = (self.float(value)?, self.double(0.0));
                let negative = self.emit(Class::Bool, "setp.lt.f64", &[&value, &none]);
                self.fault_if(&negative);
                let root = self.emit(Class::Float, "sqrt.rn.f64", &[&value]);
                Ok(self.finite(root))
            }
            (Function::Float, [value]) => {
                let value = self.node(value)?;
                let value = self.float(value)?;
                Ok(self.finite(value))
            }
            (Function::Int, [value]) => match self.node(value)? {
                value if value.is_int() => Ok(value),
                value => {
                    let value = self.float(value)?;
                    let (least, beyond) = (self.double(-TWO_TO_63), self.double(TWO_TO_63));
                    let is_above = self.emit(Class::Bool, "setp.ge.f64", &[&value, &least]);
                    self.fault_unless(&is_above);
                    let is_below = self.emit(Class::Bool, "setp.lt.f64", &[&value, &beyond]);
                    self.fault_unless(&is_below);
                    Ok(Operand::Int(self.emit(Class::Int, "cvt.rzi.s64.f64", &[&value])))
                }
            },
            _ => Err(format!("`{}` of a value that a kernel wrote", function.name())),
        }
    }

    fn extreme(&mut self, name: &str, a: Operand, b: Operand) -> Result<Operand, String> {
        if a.is_int() && b.is_int() {
            let (a, b) = (self.int(a)?, self.int(b)?);
            return Ok(Operand::Int(self.emit(Class::Int, &format!("{name}.s64"), &[&a, &b])));
        }
        let (a, b) = (self.float(a)?, self.float(b)?);
        let result = self.emit(Class::Float, &format!("{name}.f64"), &[&a, &b]);
        Ok(self.finite(result))
    }

    fn select(&mut self, condition: &Node, yes: &Node, no: &Node) -> Result<Operand, String> {
        let condition = match self.node(condition)? {
            Operand::Known(Value::Bool(value)) => return self.node(if value { yes } else { no }),
            other => self.bool(other)?,
        };
        let (other, end) = (self.label(), self.label());
        self.line(&format!("@!{condition} bra {other};"));
        let yes = self.node(yes)?;
        let result = self.copied(&yes)?;
        self.line(&format!("bra {end};"));
        self.place(&other);
        let no = self.node(no)?;
        let of_other = self.copied(&no)?;
        let assign = match (&result, &of_other) {
            (Operand::Int(to), Operand::Int(from)) => format!("mov.b64 {to}, {from};"),
            (Operand::Float(to), Operand::Float(from)) => format!("mov.f64 {to}, {from};"),
            (Operand::Bool(to), Operand::Bool(from)) => format!("and.pred {to}, {from}, {from};"),
            _ => return Err(format!("`select` of {} and {}", result.kind(), of_other.kind())),
        };
        self.line(&assign);
        self.place(&end);
        Ok(result)
    }

    /// Copies a value to a new register.
    fn copied(&mut self, operand: &Operand) -> Result<Operand, String> {
        if operand.is_int() {
            let value = self.int(operand.clone())?;
            return Ok(Operand::Int(self.emit(Class::Int, "mov.b64", &[&value])));
        }
        if operand.is_bool() {
            let value = self.bool(operand.clone())?;
            return Ok(Operand::Bool(self.emit(Class::Bool, "and.pred", &[&value, &value])));
        }
        let value = self.float(operand.clone())?;
        Ok(Operand::Float(self.emit(Class::Float, "mov.f64", &[&value])))
    }
}

/// Smallest float above every 64-bit integer.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

impl Operand {
    const fn is_int(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Known(Value::Int(_)))
    }

    const fn is_bool(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Known(Value::Bool(_)))
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Known(value) => value.kind(),
            Self::Int(_) => "integer",
            Self::Float(_) => "float",
            Self::Bool(_) => "bool",
        }
    }
}
