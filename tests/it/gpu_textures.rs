//! Textures and surfaces of every kind: what they read from a buffer and what they leave in it. The simulated device
//! and a GPU must meet the same expectations.
//!
//! Without a GPU, each test runs on the simulated device only.

use std::fmt::Write as _;

use half::f16;
use simt::Options;

use crate::gpu::{first, launch, load, untimed};
use runner_backend::sim::SimBackend;
use runner_backend::{
    Backend, BufferId, Condition, Device, DeviceError, Iteration, LaunchArg, Loop, ModuleId, Prepare, Read, Series,
    Step, TimedBatch,
};
use runner_lang::{Program, Scope};
use runner_types::{
    DeviceId, ElementType, Regime, ScalarValue, Texture, TextureAddress, TextureFilter, TextureKind, TextureSampler,
};

use ElementType::{F16, F32, I8, I16, U8, U16, U32};
use TextureKind::{Cube, Linear, OneD, OneDLayered, ThreeD, TwoD, TwoDLayered};

/// Geometries of the instructions, with their coordinate operands.
const GEOMETRIES: [(&str, &str); 6] = [
    ("1d", "%a0"),
    ("2d", "%a0, %a1"),
    ("3d", "%a0, %a1, %a2, %a2"),
    ("a1d", "%a0, %a1"),
    ("a2d", "%a0, %a1, %a2, %a2"),
    ("cube", "%a0, %a1, %a2, %a2"),
];

const POINT: TextureSampler =
    TextureSampler { filter: TextureFilter::Point, address: TextureAddress::Clamp, normalized: false, as_float: false };
const FILTERED: TextureSampler = TextureSampler { filter: TextureFilter::Linear, ..POINT };
const AS_FLOAT: TextureSampler = TextureSampler { as_float: true, ..POINT };

/// Kernels `tex_GEOMETRY_TYPE`, `suld_GEOMETRY_WIDTH`, `sust_GEOMETRY_WIDTH`, and `increment`. Each lane takes its
/// coordinates from four words of `places`, and loads to or stores from four words of `values`.
fn kernels() -> String {
    let mut text = ".version 6.0\n.target sm_50\n.address_size 64\n".to_owned();
    let mut add = |name: &str, body: &str| {
        let _ = write!(
            text,
            ".visible .entry {name}(.param .u64 object, .param .u64 places, .param .u64 values)\n{{\n.reg .b16 %h<4>;\n\
             .reg .b32 %a<4>, %b<4>, %lane;\n.reg .b64 %o, %p, %q;\nld.param.u64 %o, [object];\n\
             ld.param.u64 %p, [places];\nld.param.u64 %q, [values];\ncvta.to.global.u64 %p, %p;\n\
             cvta.to.global.u64 %q, %q;\nmov.u32 %lane, %tid.x;\nmad.wide.u32 %p, %lane, 16, %p;\n\
             mad.wide.u32 %q, %lane, 16, %q;\nld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%p];\n\
             ld.global.v4.b32 {{%b0, %b1, %b2, %b3}}, [%q];\n{body}\nret;\n}}\n"
        );
    };
    let keep = "st.global.v4.b32 [%q], {%b0, %b1, %b2, %b3};";
    for (geometry, at) in GEOMETRIES {
        for kind in ["f32", "u32", "s32"] {
            let fetch = format!("tex.{geometry}.v4.{kind}.f32 {{%b0, %b1, %b2, %b3}}, [%o, {{{at}}}];\n{keep}");
            add(&format!("tex_{geometry}_{kind}"), &fetch);
        }
        for (name, width, registers) in [
            ("b8", "b8", "%h0"),
            ("v4b8", "v4.b8", "%h0, %h1, %h2, %h3"),
            ("v2b16", "v2.b16", "%h0, %h1"),
            ("b32", "b32", "%b0"),
            ("v4b32", "v4.b32", "%b0, %b1, %b2, %b3"),
        ] {
            if geometry == "cube" {
                continue;
            }
            let halves: Vec<usize> = (0..4).filter(|n| registers.contains(&format!("%h{n}"))).collect();
            let convert = |text: &dyn Fn(usize) -> String| halves.iter().map(|n| text(*n)).collect::<String>();
            let widen = convert(&|n| format!("cvt.u32.u16 %b{n}, %h{n};\n"));
            let narrow = convert(&|n| format!("cvt.u16.u32 %h{n}, %b{n};\n"));
            let load = format!("suld.b.{geometry}.{width}.trap {{{registers}}}, [%o, {{{at}}}];\n{widen}{keep}");
            let store = format!("{narrow}sust.b.{geometry}.{width}.trap [%o, {{{at}}}], {{{registers}}};");
            add(&format!("suld_{geometry}_{name}"), &load);
            add(&format!("sust_{geometry}_{name}"), &store);
        }
    }
    add("gather", &format!("tld4.g.2d.v4.u32.f32 {{%b0, %b1, %b2, %b3}}, [%o, {{%a0, %a1}}];\n{keep}"));
    add("fetch", &format!("tex.1d.v4.f32.s32 {{%b0, %b1, %b2, %b3}}, [%o, {{%a0}}];\n{keep}"));
    let increment =
        "suld.b.1d.b32.trap {%b0}, [%o, {%a0}];\nadd.u32 %b0, %b0, 1;\nsust.b.1d.b32.trap [%o, {%a0}], {%b0};";
    add("increment", increment);
    text
}

/// A device with the kernels loaded.
struct Bench {
    device: Box<dyn Device>,
    module: ModuleId,
    _folder: tempfile::TempDir,
}

/// A kernel and the texture or surface that it uses.
struct Work<'a> {
    kernel: &'a str,
    kind: TextureKind,
    extents: [u32; 3],
    texels: (ElementType, u32),
    sampler: Option<TextureSampler>,
}

fn on_both(check: impl Fn(&mut Bench)) {
    let simulator = SimBackend::new(None, Options::default()).unwrap();
    check(&mut Bench::new(simulator.open(&DeviceId { ordinal: 0, uuid: None }).unwrap()));
    on_a_gpu(check);
}

fn on_a_gpu(check: impl FnOnce(&mut Bench)) {
    if let Some((device, _turn)) = first::device_if_any() {
        check(&mut Bench::new(device));
    }
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn floats(values: &[f32]) -> Vec<u8> {
    bytes(values.iter().map(|value| value.to_bits()))
}

fn object(buffer: BufferId, work: &Work<'_>) -> LaunchArg {
    let &Work { kind, extents, texels: (element, channels), sampler, .. } = work;
    LaunchArg::Texture(Texture { buffer, kind, shape: kind.shape(extents), element, channels, sampler })
}

impl Bench {
    fn new(mut device: Box<dyn Device>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let module = load(device.as_mut(), &folder, &kernels(), &[]).unwrap();
        Self { device, module, _folder: folder }
    }

    fn buffer(&mut self, bytes: &[u8]) -> BufferId {
        let buffer = self.device.alloc(bytes.len(), 0).unwrap();
        self.device.upload(buffer, 0, bytes).unwrap();
        buffer
    }

    fn read(&mut self, buffer: BufferId) -> Vec<u8> {
        let mut data = vec![0; self.device.size(buffer)];
        self.device.download(buffer, 0, &mut data).unwrap();
        data
    }

    fn run(&mut self, steps: Vec<Step>) -> Result<(), DeviceError> {
        self.device.run(&untimed(Vec::new(), steps, 1)).map(drop)
    }

    /// A launch with one lane per place.
    fn step(&mut self, name: &str, object: LaunchArg, places: &[[u32; 4]], values: BufferId) -> Step {
        let kernel = self.device.kernel(self.module, name).unwrap();
        let lanes = places.len() as u32;
        let places = self.buffer(&bytes(places.iter().flatten().copied()));
        launch(kernel, (1, 1, 1), (lanes, 1, 1), vec![object, LaunchArg::Buffer(places), LaunchArg::Buffer(values)])
    }

    /// Words of `values` that each lane has loaded.
    fn loaded(&mut self, work: &Work<'_>, texels: &[u8], places: &[[u32; 4]]) -> Result<Vec<Vec<u32>>, DeviceError> {
        let (image, values) = (self.buffer(texels), self.buffer(&vec![0xEE; 16 * places.len()]));
        let step = self.step(work.kernel, object(image, work), places, values);
        self.run(vec![step])?;
        assert_eq!(self.read(image), texels, "{}: a fetch changed the buffer", work.kernel);
        // A gather returns one channel of four texels.
        let given = if work.kernel == "gather" { 4 } else { work.texels.1 as usize };
        Ok(words(&self.read(values)).chunks(4).map(|lane| lane[..given].to_vec()).collect())
    }
}

/// A place given by float coordinates.
fn at(place: [f32; 3]) -> [u32; 4] {
    let [x, y, z] = place.map(f32::to_bits);
    [x, y, z, 0]
}

/// A place in a layer.
fn in_layer(layer: u32, [x, y]: [f32; 2]) -> [u32; 4] {
    [layer, x.to_bits(), y.to_bits(), 0]
}

/// A fetch, its texels, and the expected result at each place.
type Fetch<'a> = (Work<'a>, Vec<u8>, Vec<([u32; 4], Vec<u32>)>);

fn fetch(
    (kernel, kind, extents): (&str, TextureKind, [u32; 3]),
    (element, channels): (ElementType, u32),
    sampler: TextureSampler,
    texels: Vec<u8>,
    expected: Vec<([u32; 4], Vec<u32>)>,
) -> Fetch<'_> {
    let work = Work { kernel, kind, extents, texels: (element, channels), sampler: Some(sampler) };
    (work, texels, expected)
}

fn float(place: [u32; 4], values: &[f32]) -> ([u32; 4], Vec<u32>) {
    (place, values.iter().map(|value| value.to_bits()).collect())
}

fn int(place: [u32; 4], values: &[i32]) -> ([u32; 4], Vec<u32>) {
    (place, values.iter().map(|value| value.cast_unsigned()).collect())
}

fn check_fetches(bench: &mut Bench, fetches: &[Fetch<'_>]) {
    let mut wrong = Vec::new();
    for (work, texels, expected) in fetches {
        let places: Vec<_> = expected.iter().map(|(place, _)| *place).collect();
        let expected: Vec<_> = expected.iter().map(|(_, values)| values.clone()).collect();
        let found = bench.loaded(work, texels, &places);
        if found.as_ref() != Ok(&expected) {
            let Work { kernel, kind, extents, texels, sampler } = work;
            wrong.push(format!(
                "{kernel} of {kind:?} {extents:?} of {texels:?} by {sampler:?}: {found:x?}, not {expected:x?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn up_to(count: u32) -> impl Iterator<Item = u32> {
    0..count
}

fn halves(values: impl Iterator<Item = u32>) -> Vec<u8> {
    values.flat_map(|value| f16::from_f32(value as f32).to_le_bytes()).collect()
}

fn singles(values: impl Iterator<Item = u32>) -> Vec<u8> {
    values.flat_map(|value| (value as f32).to_le_bytes()).collect()
}

fn shorts(values: impl Iterator<Item = u32>) -> Vec<u8> {
    values.flat_map(|value| (value as u16).to_le_bytes()).collect()
}

#[test]
fn rows_are_fetched_by_every_address_mode() {
    let row = ("tex_1d_f32", OneD, [4, 1, 1]);
    let texels = || floats(&[1.0, 2.0, 3.0, 4.0]);
    let places = |expected: &[(f32, f32)]| expected.iter().map(|(x, f)| float(at([*x, 0.0, 0.0]), &[*f])).collect();
    let normalized = |address, filter| TextureSampler { address, filter, normalized: true, as_float: false };
    let fetches = |filter, all: [[f32; 4]; 4], xs: [f32; 4]| {
        use TextureAddress::{Border, Clamp, Mirror, Wrap};
        let each = [Clamp, Border, Wrap, Mirror].into_iter().zip(all);
        let made = each.map(|(address, found)| {
            let expected: Vec<_> = xs.into_iter().zip(found).collect();
            fetch(row, (F32, 1), normalized(address, filter), texels(), places(&expected))
        });
        made.collect::<Vec<_>>()
    };
    // Texel n covers n/4 to (n + 1)/4. 2.3 is at 0.3 in the third copy; 1.4 is at 0.6 in the mirrored second copy.
    let point = [[1.0, 4.0, 4.0, 4.0], [0.0; 4], [4.0, 1.0, 2.0, 2.0], [1.0, 4.0, 3.0, 2.0]];
    // 0 and 1 are halfway between an edge texel and whatever lies outside; 0.25 and 0.375 are inside.
    let filtered = [[1.0, 4.0, 1.5, 2.0], [0.5, 2.0, 1.5, 2.0], [2.5, 2.5, 1.5, 2.0], [1.0, 4.0, 1.5, 2.0]];
    let mut all = fetches(TextureFilter::Point, point, [-0.125, 1.125, 1.4, 2.3]);
    all.extend(fetches(TextureFilter::Linear, filtered, [0.0, 1.0, 0.25, 0.375]));
    // Unnormalized coordinates: 2.25 is 0.75 past the centre of texel 1.
    all.push(fetch(row, (F32, 1), FILTERED, texels(), places(&[(2.25, 2.75), (-9.0, 1.0), (99.0, 4.0)])));
    on_both(|bench| check_fetches(bench, &all));
}

#[test]
fn planes_are_fetched_whatever_the_length_of_their_rows() {
    let plane = |kernel, extents| (kernel, TwoD, extents);
    let bytes_of = |count: u32| up_to(count).map(|n| (3 * n) as u8).collect::<Vec<u8>>();
    let ramp = |width: u32| up_to(2 * width).map(move |n| n % width + 10 * (n / width));
    // Between texel centres, a ramp of x + 10 y is x - 0.5 + 10 (y - 0.5).
    let on_ramp = || {
        vec![
            float(at([1.25, 1.0, 0.0]), &[5.75]),
            float(at([4.5, 1.5, 0.0]), &[14.0]),
            float(at([-3.0, 0.75, 0.0]), &[2.5]),
        ]
    };
    let pixels = vec![9, 9, 9, 9, 0, 255, 0, 255, 7, 7, 7, 7];
    // The second channel holds rows 10, 11, 12 and 20, 21, 22. The texels around (1.9, 1.1) come counterclockwise from
    // the lower left.
    let second = [10, 11, 12, 20, 21, 22].into_iter().flat_map(|value| [0, value]).collect();
    let signed = [1_i16, 2, 32767, -32768, -32767, 0].into_iter().flat_map(i16::to_le_bytes).collect();
    let all = [
        fetch(
            plane("tex_2d_u32", [7, 3, 1]),
            (U8, 1),
            POINT,
            bytes_of(21),
            vec![int(at([6.5, 2.5, 0.0]), &[60]), int(at([0.5, 1.5, 0.0]), &[21]), int(at([99.0, -1.0, 0.0]), &[18])],
        ),
        fetch(
            plane("tex_2d_s32", [5, 2, 1]),
            (I8, 1),
            POINT,
            (0..10).map(|n| 250 + n.min(5)).collect(),
            vec![int(at([0.5, 0.5, 0.0]), &[-6]), int(at([4.5, 1.5, 0.0]), &[-1])],
        ),
        fetch(
            plane("tex_2d_f32", [3, 1, 1]),
            (U8, 4),
            AS_FLOAT,
            pixels,
            vec![float(at([1.5, 0.5, 0.0]), &[0.0, 1.0, 0.0, 1.0])],
        ),
        fetch(
            plane("tex_2d_f32", [3, 1, 1]),
            (I16, 2),
            AS_FLOAT,
            signed,
            vec![float(at([1.5, 0.5, 0.0]), &[1.0, -1.0]), float(at([2.5, 0.5, 0.0]), &[-1.0, 0.0])],
        ),
        fetch(plane("tex_2d_f32", [5, 2, 1]), (F16, 1), FILTERED, halves(ramp(5)), on_ramp()),
        fetch(plane("tex_2d_f32", [5, 2, 1]), (F32, 1), FILTERED, singles(ramp(5)), on_ramp()),
        // With 32-byte rows, a GPU fetches directly from the buffer.
        fetch(plane("tex_2d_f32", [8, 2, 1]), (F32, 1), FILTERED, singles(ramp(8)), on_ramp()),
        fetch(plane("gather", [3, 2, 1]), (U8, 2), POINT, second, vec![int(at([1.9, 1.1, 0.0]), &[21, 22, 12, 11])]),
        fetch(
            plane("tex_2d_u32", [3, 2, 1]),
            (U32, 4),
            POINT,
            bytes(up_to(24)),
            vec![int(at([2.5, 1.5, 0.0]), &[20, 21, 22, 23])],
        ),
    ];
    on_both(|bench| check_fetches(bench, &all));
}

#[test]
fn volumes_layers_and_cubes_are_fetched() {
    // Two planes of two rows of three: x + 10 y + 100 z.
    let volume = || singles(up_to(12).map(|n| n % 3 + 10 * (n / 3 % 2) + 100 * (n / 6)));
    let cube = || floats(&up_to(24).map(|n| (n / 4 * 10 + n % 4) as f32).collect::<Vec<_>>());
    // Face, its coordinates s and t, and the corner that is hit. +x: s = -z, t = -y: right, top. -x: s = z, t = -y:
    // left, top. +y: s = x, t = z: right, top. -y: s = x, t = -z: right, bottom. +z: s = x, t = -y: right, bottom. -z:
    // s = -x, t = -y: left, top.
    let directions = vec![
        float(at([2.0, 1.0, -1.0]), &[1.0]),
        float(at([-2.0, 1.0, -1.0]), &[10.0]),
        float(at([1.0, 2.0, -1.0]), &[21.0]),
        float(at([1.0, -2.0, -1.0]), &[33.0]),
        float(at([1.0, -1.0, 2.0]), &[43.0]),
        float(at([1.0, 1.0, -2.0]), &[50.0]),
    ];
    let all = [
        fetch(
            ("tex_3d_f32", ThreeD, [3, 2, 2]),
            (F32, 1),
            FILTERED,
            volume(),
            vec![
                float(at([1.75, 1.25, 1.25]), &[83.75]),
                float(at([2.5, 1.5, 1.5]), &[112.0]),
                float(at([0.5, 0.5, 1.0]), &[50.0]),
            ],
        ),
        fetch(
            ("tex_3d_u32", ThreeD, [3, 2, 2]),
            (U16, 2),
            POINT,
            shorts(up_to(24)),
            vec![int(at([2.5, 1.5, 1.5]), &[22, 23]), int(at([0.5, 0.5, 1.5]), &[12, 13])],
        ),
        fetch(
            ("tex_a1d_u32", OneDLayered, [5, 3, 1]),
            (U16, 1),
            POINT,
            shorts(up_to(15)),
            vec![int(in_layer(2, [4.5, 0.0]), &[14]), int(in_layer(1, [0.5, 0.0]), &[5])],
        ),
        fetch(
            ("tex_a1d_f32", OneDLayered, [4, 2, 1]),
            (F32, 1),
            FILTERED,
            singles(up_to(8)),
            vec![
                float(in_layer(1, [1.25, 0.0]), &[4.75]),
                // There is no filtering between layers.
                float(in_layer(0, [9.0, 0.0]), &[3.0]),
            ],
        ),
        fetch(
            ("tex_a2d_f32", TwoDLayered, [3, 2, 3]),
            (F16, 1),
            FILTERED,
            halves(up_to(18)),
            vec![float(in_layer(2, [1.25, 1.0]), &[14.25]), float(in_layer(0, [2.5, 1.5]), &[5.0])],
        ),
        fetch(
            ("tex_a2d_u32", TwoDLayered, [3, 2, 3]),
            (U8, 1),
            POINT,
            (0..18).collect(),
            vec![int(in_layer(1, [1.5, 1.5]), &[10])],
        ),
        fetch(("tex_cube_f32", Cube, [2, 1, 1]), (F32, 1), POINT, cube(), directions),
    ];
    on_both(|bench| check_fetches(bench, &all));
}

#[test]
fn surfaces_of_every_kind_are_read_and_written() {
    let surface = |geometry, kind, extents, texels| (geometry, kind, extents, texels);
    // A place, whose first coordinate is a byte offset in the row, and the index of its texel.
    let all = [
        (surface("1d_b8", OneD, [7, 1, 1], (U8, 1)), [5, 0, 0, 0], 5),
        (surface("1d_b32", OneD, [7, 1, 1], (F32, 1)), [24, 0, 0, 0], 6),
        (surface("2d_v2b16", TwoD, [3, 5, 1], (F16, 2)), [8, 3, 0, 0], 11),
        (surface("2d_v4b8", TwoD, [8, 2, 1], (U8, 4)), [12, 1, 0, 0], 11),
        (surface("3d_b32", ThreeD, [3, 2, 4], (F32, 1)), [4, 1, 3, 0], 22),
        (surface("3d_v4b8", ThreeD, [3, 2, 4], (U8, 4)), [8, 0, 2, 0], 14),
        (surface("a1d_v4b32", OneDLayered, [3, 4, 1], (F32, 4)), [2, 16, 0, 0], 7),
        (surface("a2d_v2b16", TwoDLayered, [3, 2, 3], (U16, 2)), [1, 8, 1, 0], 11),
        (surface("a2d_b8", TwoDLayered, [3, 2, 3], (I8, 1)), [2, 1, 0, 0], 13),
    ];
    on_both(|bench| {
        let mut wrong = Vec::new();
        for ((name, kind, extents, texels), place, number) in all {
            let channel = texels.0.size();
            let (texel, count) = (channel * texels.1 as usize, kind.shape(extents).iter().product::<u32>() as usize);
            let before: Vec<u8> = (0..texel * count).map(|n| (n * 7) as u8).collect();
            // Every byte of channel c is 0x40 + c.
            let words: Vec<u32> = up_to(4).map(|c| (0x40 + c) * 0x0101_0101).collect();
            let stored: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()[..channel].to_vec()).collect();
            let mut after = before.clone();
            after[number * texel..][..texel].copy_from_slice(&stored[..texel]);
            let (store, load) = (format!("sust_{name}"), format!("suld_{name}"));
            let work = Work { kernel: &store, kind, extents, texels, sampler: None };
            let (image, values) = (bench.buffer(&before), bench.buffer(&bytes(words)));
            let step = bench.step(&store, object(image, &work), &[place], values);
            let ran = bench.run(vec![step]);
            let left = bench.read(image);
            if ran.is_err() || left != after {
                wrong.push(format!("{store}: {ran:?}, {left:x?}, not {after:x?}"));
            }
            let expected: Vec<u32> = before[number * texel..][..texel]
                .chunks(channel)
                .map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)))
                .collect();
            let found = bench.loaded(&Work { kernel: &load, ..work }, &before, &[place]);
            if found.as_ref() != Ok(&vec![expected.clone()]) {
                wrong.push(format!("{load}: {found:x?}, not {expected:x?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// A row of eight words: here as a surface, in `FLOATS` and `PLANE` as textures.
const ROW: Work<'static> =
    Work { kernel: "increment", kind: OneD, extents: [8, 1, 1], texels: (U32, 1), sampler: None };
const FLOATS: Work<'static> = Work { texels: (F32, 1), sampler: Some(POINT), ..ROW };
const PLANE: Work<'static> = Work { kind: TwoD, extents: [8, 1, 1], ..FLOATS };

#[test]
fn a_launch_sees_what_the_launch_before_it_left_in_whatever_form() {
    on_both(|bench| {
        let texels = singles(up_to(8));
        let written = bench.buffer(&floats(&[50.0, 0.0, 0.0, 0.0]));
        let (image, copy) = (bench.buffer(&texels), bench.buffer(&[0; 32]));
        let surface = |work: &Work<'_>| object(image, &Work { sampler: None, ..*work });
        let seen: Vec<_> = (0..3).map(|_| bench.buffer(&[0; 16])).collect();
        let value = |bench: &mut Bench, buffer| words(&bench.read(buffer))[0];
        // The same array, and an aligned plane that would be linear memory if there were no surface.
        let steps = vec![
            bench.step("sust_2d_b32", surface(&PLANE), &[[12, 0, 0, 0]], written),
            bench.step("tex_2d_f32", object(image, &PLANE), &[at([3.5, 0.5, 0.0])], seen[0]),
        ];
        bench.run(steps).unwrap();
        assert_eq!(value(bench, seen[0]), 50.0_f32.to_bits());
        // Writes a surface, then reads the buffer as memory: a linear texture, a copy, another array.
        bench.device.upload(image, 0, &texels).unwrap();
        let steps = vec![
            bench.step("sust_1d_b32", surface(&ROW), &[[8, 0, 0, 0]], written),
            bench.step("fetch", object(image, &Work { kind: Linear, ..FLOATS }), &[[2, 0, 0, 0]], seen[0]),
            Step::Copy { from: image, to: copy },
            bench.step("tex_2d_f32", object(image, &PLANE), &[at([2.5, 0.5, 0.0])], seen[1]),
            bench.step("tex_1d_f32", object(image, &FLOATS), &[at([2.5, 0.5, 0.0])], seen[2]),
        ];
        bench.run(steps).unwrap();
        let found: Vec<u32> = seen.iter().map(|buffer| value(bench, *buffer)).collect();
        assert_eq!(found, [50.0_f32.to_bits(); 3]);
        let expected = floats(&[0.0, 1.0, 50.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!((bench.read(image), bench.read(copy)), (expected.clone(), expected));
        // Writes memory, then reads it as an array: in the same body, and in the next one.
        for number in [5.0_f32, 6.0] {
            let value_of = ScalarValue { element: F32, bits: number.to_bits().into() };
            let volume = Work { kind: ThreeD, extents: [2, 2, 2], ..FLOATS };
            let steps = vec![
                Step::Memset { buffer: image, value: value_of },
                bench.step("tex_3d_f32", object(image, &volume), &[at([1.5, 1.5, 1.5])], seen[0]),
            ];
            bench.run(steps).unwrap();
            assert_eq!(value(bench, seen[0]), number.to_bits());
        }
        bench.device.upload(image, 0, &texels).unwrap();
        let step = bench.step("tex_1d_f32", object(image, &FLOATS), &[at([7.5, 0.0, 0.0])], seen[0]);
        bench.run(vec![step]).unwrap();
        assert_eq!(value(bench, seen[0]), 7.0_f32.to_bits());
    });
}

/// A counter in a surface, its own copy, and a step that increments it.
fn counter(bench: &mut Bench) -> (BufferId, Vec<Prepare>, Vec<Step>) {
    let (count, pristine, unused) = (bench.buffer(&[0; 32]), bench.buffer(&[0; 32]), bench.buffer(&[0; 16]));
    let step = bench.step("increment", object(count, &ROW), &[[0; 4]], unused);
    (count, vec![Prepare::Copy { from: pristine, to: count }], vec![step])
}

/// A loop whose condition reads the counter after every iteration.
fn until_five(count: BufferId, steps: &[Step]) -> Step {
    let read = Read { name: "count".to_owned(), buffer: count, element: U32 };
    let program = Program::parse("count >= 5").unwrap();
    let until = Condition { program, scope: Scope::default(), reads: vec![read] };
    let iterations = vec![Iteration { steps: steps.to_vec(), until }];
    Step::Loop(Box::new(Loop { iterations, at_most: 9 }))
}

#[test]
fn a_surface_accumulates_over_runs_unless_its_buffer_is_restored() {
    on_both(|bench| {
        let (count, restore, steps) = counter(bench);
        bench.device.run(&untimed(Vec::new(), steps.clone(), 3)).unwrap();
        assert_eq!(words(&bench.read(count))[..2], [3, 0]);
        bench.device.run(&untimed(restore, steps.clone(), 3)).unwrap();
        assert_eq!(words(&bench.read(count))[0], 1);
        bench.run(vec![until_five(count, &steps)]).unwrap();
        assert_eq!((words(&bench.read(count))[0], bench.device.iterations()), (5, 4));
    });
}

#[test]
fn timed_runs_leave_in_the_buffer_what_they_wrote_to_the_surface() {
    on_a_gpu(|bench| {
        let (count, restore, steps) = counter(bench);
        let time = |bench: &mut Bench, regime, prepare: &[Prepare], (launches, lead)| {
            bench.device.upload(count, 0, &[0; 32]).unwrap();
            let series = Series { launches, lead, ..Series::default() };
            let batch = TimedBatch { prepare: prepare.to_vec(), steps: steps.clone(), regime, series, samples: 3 };
            let samples = bench.device.clock().unwrap().time(&batch).unwrap();
            assert!(samples.times.iter().all(|time| time.whole > 0.0), "{samples:?}");
            words(&bench.read(count))[0]
        };
        for (regime, runs) in [(Regime::Cold, (2, 0)), (Regime::Warm, (5, 1)), (Regime::Graph, (5, 1))] {
            let each = runs.0 + runs.1;
            assert_eq!(time(bench, regime, &[], runs), 3 * each, "{regime:?}");
            let left = if regime == Regime::Cold { 1 } else { each };
            assert_eq!(time(bench, regime, &restore, runs), left, "{regime:?}, restored");
        }
        assert_eq!(time(bench, Regime::Host, &[], (1, 0)), 3);
    });
}

#[test]
fn runs_that_alternate_between_sets_of_buffers_have_arrays_of_their_own() {
    on_a_gpu(|bench| {
        let sets: Vec<_> = (0..3).map(|_| counter(bench)).collect();
        let others = sets[1..].iter().map(|(.., steps)| steps.clone()).collect();
        let series = Series { launches: 4, others, ..Series::default() };
        let steps = sets[0].2.clone();
        let batch = TimedBatch { prepare: Vec::new(), steps, regime: Regime::Rotate, series, samples: 1 };
        bench.device.clock().unwrap().time(&batch).unwrap();
        let counts: Vec<u32> = sets.iter().map(|(count, ..)| words(&bench.read(*count))[0]).collect();
        assert_eq!(counts, [2, 1, 1]);
    });
}

#[test]
fn what_arrays_cannot_do_is_refused_with_a_reason() {
    on_a_gpu(|bench| {
        let (count, _, steps) = counter(bench);
        let refused = |bench: &mut Bench, steps| bench.run(steps).unwrap_err().to_string();
        let series = Series::default();
        let graph = TimedBatch {
            prepare: Vec::new(),
            steps: vec![until_five(count, &steps)],
            regime: Regime::Graph,
            series,
            samples: 1,
        };
        let why = bench.device.clock().unwrap().time(&graph).unwrap_err().to_string();
        assert!(why.contains("a graph cannot copy arrays in a loop"), "{why}");
        // The surface's buffer is where the lanes' values come from, too.
        let both = bench.step("increment", object(count, &ROW), &[[0; 4]], count);
        let why = refused(bench, vec![both]);
        assert!(why.contains("as a surface, and also by its address"), "{why}");
        let Step::Launch(mut elsewhere) = steps[0].clone() else { panic!("{steps:?}") };
        elsewhere.settings.stream = Some(1);
        let copy = bench.buffer(&[0; 32]);
        let why = refused(bench, vec![Step::Launch(elsewhere), Step::Copy { from: count, to: copy }]);
        assert!(why.contains("several streams"), "{why}");
        let huge = Work { extents: [1 << 20, 1, 1], ..ROW };
        let (image, unused) = (bench.buffer(&vec![0; 4 << 20]), bench.buffer(&[0; 16]));
        let step = bench.step("increment", object(image, &huge), &[[0; 4]], unused);
        let why = refused(bench, vec![step]);
        assert!(why.contains("kind `1d` with 1048576 × 1 × 1 texels"), "{why}");
        // None of these errors makes the device unusable.
        bench.run(steps).unwrap();
        assert_eq!(words(&bench.read(count))[0], 1);
    });
}
