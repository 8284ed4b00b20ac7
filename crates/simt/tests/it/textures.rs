//! Textures and surfaces. Expected values were computed by hand from the formulas in the CUDA C++ Programming Guide
//! ("Texture Fetching").

use simt::{AddressMode, Channel, Geometry, Image, Sampler, TrapKind};

use crate::bench::{Arg, Bench, trap};

const POINT: Sampler = Sampler { address: AddressMode::Clamp, linear: false, normalized: false, as_float: false };
const BYTE: Channel = Channel::Int { bytes: 1, signed: false };

/// Creates a device with a kernel whose lanes execute `instructions`, with four words of `places` in `%a0` to `%a3`,
/// and store `%b0` to `%b3`.
fn bench(instructions: &str) -> Bench {
    Bench::new(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 image, .param .u64 places, \
         .param .u64 out)\n{{\n.reg .b16 %h<5>;\n.reg .b32 %a<4>, %b<4>, %lane;\n.reg .b64 %o, %p, %q;\n\
         ld.param.u64 %o, [image];\nld.param.u64 %p, [places];\nld.param.u64 %q, [out];\nmov.u32 %lane, %tid.x;\n\
         mad.wide.u32 %p, %lane, 16, %p;\nmad.wide.u32 %q, %lane, 16, %q;\n\
         ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%p];\nmov.b32 %b0, 0;\nmov.b32 %b1, 0;\nmov.b32 %b2, 0;\n\
         mov.b32 %b3, 0;\n{instructions}\nst.global.v4.b32 [%q], {{%b0, %b1, %b2, %b3}};\nret;\n}}\n"
    ))
}

/// Describes an image whose address is set later.
fn image(geometry: Geometry, size: [u32; 3], (channel, channels): (Channel, u32), sampler: Option<Sampler>) -> Image {
    Image { address: 0, geometry, size, channel, channels, sampler }
}

/// Creates an image from `bytes` and launches one lane per place. Returns the device, the result of the launch, and the
/// addresses of the texels and the results.
fn run(
    instructions: &str,
    image: Image,
    bytes: &[u8],
    places: &[[u32; 4]],
) -> (Bench, Result<simt::LaunchReport, simt::LaunchError>, [u64; 2]) {
    let mut bench = bench(instructions);
    let address = bench.machine.alloc(bytes.len() as u64).unwrap();
    bench.machine.write(address, bytes).unwrap();
    let handle = bench.machine.create_image(Image { address, ..image }).unwrap();
    let words: Vec<i32> = places.iter().flatten().map(|word| word.cast_signed()).collect();
    let (places, out) = (bench.buffer(&words), bench.buffer(&vec![-1; words.len()]));
    let lanes = words.len() as u32 / 4;
    let args = [Arg::Address(handle), Arg::Address(places), Arg::Address(out)];
    let ended = bench.launch("test", [1; 3], [lanes, 1, 1], &args);
    (bench, ended, [address, out])
}

/// Returns the words that each lane stores.
fn words(instructions: &str, image: Image, bytes: &[u8], places: &[[u32; 4]]) -> Vec<[u32; 4]> {
    let (bench, ended, [_, out]) = run(instructions, image, bytes, places);
    ended.unwrap();
    let words = bench.ints(out, places.len() * 4);
    words.as_chunks().0.iter().map(|lane: &[i32; 4]| lane.map(i32::cast_unsigned)).collect()
}

/// Returns the first channel of a float fetch at each place.
fn floats(instruction: &str, image: Image, texels: &[f32], places: &[[f32; 3]]) -> Vec<f32> {
    let bytes: Vec<u8> = texels.iter().flat_map(|x| x.to_le_bytes()).collect();
    let places: Vec<_> = places.iter().map(|[x, y, z]| [x.to_bits(), y.to_bits(), z.to_bits(), 0]).collect();
    words(instruction, image, &bytes, &places).iter().map(|[x, ..]| f32::from_bits(*x)).collect()
}

const TEX_1D: &str = "tex.1d.v4.f32.f32 {%b0, %b1, %b2, %b3}, [%o, {%a0}];";
const TEX_2D: &str = "tex.2d.v4.f32.f32 {%b0, %b1, %b2, %b3}, [%o, {%a0, %a1}];";
const TEX_3D: &str = "tex.level.3d.v4.f32.f32 {%b0, %b1, %b2, %b3}, [%o, {%a0, %a1, %a2, %a2}], 0f00000000;";

#[test]
fn a_filtered_fetch_weighs_four_texels_with_fractions_of_eight_bits() {
    let plane = |linear| image(Geometry::TwoD, [4, 2, 1], (Channel::Float, 1), Some(Sampler { linear, ..POINT }));
    let texels = [0.0, 10.0, 20.0, 30.0, 100.0, 110.0, 120.0, 130.0];
    let places = [[1.3, 1.0, 0.0], [0.5, 0.5, 0.0], [2.5, 1.5, 0.0], [1.501, 0.75, 0.0], [-7.0, 9.0, 0.0]];
    let found = floats(TEX_2D, plane(true), &texels, &places);
    // 1.3 - 0.5 is 0.8, whose fraction is 205/256; 1.0 - 0.5 is one half. The plane is 10 x + 100 y. 1.501 - 0.5 is
    // 1.001, whose fraction rounds to 0.
    let expected = [10.0 * 205.0 / 256.0 + 50.0, 0.0, 120.0, 10.0 + 25.0, 100.0];
    assert_eq!(found, expected);
    assert_eq!(floats(TEX_2D, plane(false), &texels, &places), [110.0, 0.0, 120.0, 10.0, 100.0]);
}

#[test]
fn each_address_mode_gives_its_texels_outside_of_the_texture() {
    let fetch = |linear: bool, address: AddressMode, places: &[f32]| {
        let sampler = Sampler { address, linear, normalized: true, as_float: false };
        let row = image(Geometry::OneD, [4, 1, 1], (Channel::Float, 1), Some(sampler));
        let places: Vec<_> = places.iter().map(|&x| [x, 0.0, 0.0]).collect();
        floats(TEX_1D, row, &[1.0, 2.0, 3.0, 4.0], &places)
    };
    let places = [-0.125, 1.125, 1.4, 2.3];
    assert_eq!(fetch(false, AddressMode::Clamp, &places), [1.0, 4.0, 4.0, 4.0]);
    assert_eq!(fetch(false, AddressMode::Border, &places), [0.0; 4]);
    assert_eq!(fetch(false, AddressMode::Wrap, &places), [4.0, 1.0, 2.0, 2.0]);
    assert_eq!(fetch(false, AddressMode::Mirror, &places), [1.0, 4.0, 3.0, 2.0]);
    // At 0 and 1, half of the weight is outside.
    assert_eq!(fetch(true, AddressMode::Clamp, &[0.0, 1.0]), [1.0, 4.0]);
    assert_eq!(fetch(true, AddressMode::Border, &[0.0, 1.0]), [0.5, 2.0]);
    assert_eq!(fetch(true, AddressMode::Wrap, &[0.0, 1.0]), [2.5, 2.5]);
    assert_eq!(fetch(true, AddressMode::Mirror, &[0.0, 1.0]), [1.0, 4.0]);
}

#[test]
fn volumes_layers_and_cubes_are_planes_one_after_the_other() {
    let linear = Some(Sampler { linear: true, ..POINT });
    let volume = image(Geometry::ThreeD, [2, 2, 2], (Channel::Float, 1), linear);
    let texels: Vec<f32> = (0..8).map(|n| n as f32).collect();
    // The volume is x + 2 y + 4 z, with texel centres at 0.5 and 1.5.
    assert_eq!(floats(TEX_3D, volume, &texels, &[[1.0, 1.0, 1.0], [0.75, 0.5, 1.25]]), [3.5, 0.25 + 3.0]);

    let layers = image(Geometry::TwoDLayered, [2, 1, 3], (Channel::Float, 1), Some(POINT));
    let fetch = "tex.a2d.v4.f32.f32 {%b0, %b1, %b2, %b3}, [%o, {%a0, %a1, %a2, %a2}];";
    let bytes: Vec<u8> = texels[..6].iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = 1.5_f32.to_bits();
    let found = words(fetch, layers, &bytes, &[[0, x, 0, 0], [2, x, 0, 0], [7, x, 0, 0]]);
    assert_eq!(found.iter().map(|[x, ..]| f32::from_bits(*x)).collect::<Vec<_>>(), [1.0, 5.0, 5.0]);
    let rows = Image { geometry: Geometry::OneDLayered, ..layers };
    let fetch = "tex.a1d.v4.f32.s32 {%b0, %b1, %b2, %b3}, [%o, {%a0, %a1}];";
    let found = words(fetch, rows, &bytes, &[[1, 0, 0, 0], [2, 1, 0, 0]]);
    assert_eq!(found.iter().map(|[x, ..]| f32::from_bits(*x)).collect::<Vec<_>>(), [2.0, 5.0]);

    // Each face has 2 × 2 texels, with the value 10 times the face number plus the texel number.
    let cube = image(Geometry::Cube, [2, 2, 6], (Channel::Float, 1), Some(POINT));
    let texels: Vec<f32> = (0..24).map(|n| (n / 4 * 10 + n % 4) as f32).collect();
    let fetch = "tex.cube.v4.f32.f32 {%b0, %b1, %b2, %b3}, [%o, {%a0, %a1, %a2, %a2}];";
    let directions =
        [[2.0, 1.0, -1.0], [-2.0, 1.0, -1.0], [1.0, 2.0, -1.0], [1.0, -2.0, -1.0], [1.0, -1.0, 2.0], [1.0, 1.0, -2.0]];
    // +x: s = -z, t = -y: right, top. -x: s = z, t = -y: left, top. +y: s = x, t = z: right, top. -y: s = x, t = -z:
    // right, bottom. +z: s = x, t = -y: right, bottom. -z: s = -x, t = -y: left, top.
    assert_eq!(floats(fetch, cube, &texels, &directions), [1.0, 10.0, 21.0, 33.0, 43.0, 50.0]);
}

#[test]
fn integers_are_read_as_they_are_or_as_floats_from_0_or_minus_1_to_1() {
    let fetch = |kind: &str| format!("tex.1d.v4.{kind}.s32 {{%b0, %b1, %b2, %b3}}, [%o, {{%a0}}];");
    let pixels = |channel, sampler| image(Geometry::OneD, [2, 1, 1], (channel, 4), Some(sampler));
    let signed = Channel::Int { bytes: 1, signed: true };
    let bytes = [255, 51, 0, 128, 127, 129, 128, 0];
    let places = [[0, 0, 0, 0], [1, 0, 0, 0]];
    assert_eq!(words(&fetch("u32"), pixels(BYTE, POINT), &bytes, &places), [[255, 51, 0, 128], [127, 129, 128, 0]]);
    let minus = |n: i32| (-n).cast_unsigned();
    let expected = [[minus(1), 51, 0, minus(128)], [127, minus(127), minus(128), 0]];
    assert_eq!(words(&fetch("s32"), pixels(signed, POINT), &bytes, &places), expected);
    let float = Sampler { as_float: true, ..POINT };
    let of = |values: [f32; 4]| values.map(f32::to_bits);
    let expected = [of([1.0, 0.2, 0.0, 128.0 / 255.0]), of([127.0 / 255.0, 129.0 / 255.0, 128.0 / 255.0, 0.0])];
    assert_eq!(words(&fetch("f32"), pixels(BYTE, float), &bytes, &places), expected);
    let expected = [of([-1.0 / 127.0, 51.0 / 127.0, 0.0, -1.0]), of([1.0, -1.0, -1.0, 0.0])];
    assert_eq!(words(&fetch("f32"), pixels(signed, float), &bytes, &places), expected);
    // 0x3e00 is 1.5 as f16; each texel has one 16-bit channel.
    let halves = image(Geometry::Linear, [2, 1, 1], (Channel::Half, 1), Some(POINT));
    let found = words(&fetch("f32"), halves, &[0, 0x3e, 0, 0xbe], &[[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], [u32::MAX; 4]]);
    assert_eq!(found.iter().map(|[x, ..]| f32::from_bits(*x)).collect::<Vec<_>>(), [1.5, -1.5, 0.0, 0.0]);
}

#[test]
fn a_gather_gives_four_texels_counter_clockwise_from_the_lower_left() {
    let plane = image(Geometry::TwoD, [3, 2, 1], (BYTE, 2), Some(POINT));
    let gather = "tld4.g.2d.v4.u32.f32 {%b0, %b1, %b2, %b3}, [%o, {%a0, %a1}];";
    let bytes = [0, 10, 0, 11, 0, 12, 0, 20, 0, 21, 0, 22];
    let found = words(gather, plane, &bytes, &[[1.9_f32.to_bits(), 1.1_f32.to_bits(), 0, 0]]);
    assert_eq!(found, [[21, 22, 12, 11]]);
}

#[test]
fn surfaces_are_read_and_written_by_bytes_and_end_as_the_instruction_says() {
    let surface = image(Geometry::TwoD, [4, 2, 1], (Channel::Int { bytes: 4, signed: false }, 1), None);
    let bytes: Vec<u8> = (1..=8_u32).flat_map(u32::to_le_bytes).collect();
    let places = [[4, 1, 0, 0], [16, 0, 0, 0], [0, 2, 0, 0], [u32::MAX - 3, 0, 0, 0]];
    let load = |mode: &str| format!("suld.b.2d.b32.{mode} %b0, [%o, {{%a0, %a1}}];");
    let first = |words: Vec<[u32; 4]>| words.iter().map(|[x, ..]| *x).collect::<Vec<_>>();
    assert_eq!(first(words(&load("zero"), surface, &bytes, &places)), [6, 0, 0, 0]);
    assert_eq!(first(words(&load("clamp"), surface, &bytes, &places)), [6, 4, 5, 1]);
    let (kind, message) = trap(run(&load("trap"), surface, &bytes, &places).1);
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(message.contains("surface of 4 × 2 × 1 texels of 4 bytes, at [16, 0]"), "{message}");
    let (kind, _) = trap(run(&load("clamp"), surface, &bytes, &[[2, 0, 0, 0]]).1);
    assert_eq!(kind, TrapKind::Misaligned);

    let store = "sust.b.2d.v2.b16.zero [%o, {%a0, %a1}], {%h1, %h2};";
    let store = format!("cvt.u16.u32 %h1, %a2;\ncvt.u16.u32 %h2, %a3;\n{store}");
    let (bench, ended, [texels, _]) = run(&store, surface, &bytes, &[[8, 1, 0xaaaa, 0xbbbb], [16, 0, 9, 9]]);
    ended.unwrap();
    assert_eq!(bench.ints(texels, 8), [1, 2, 3, 4, 5, 6, 0xbbbb_aaaa_u32.cast_signed(), 8]);

    // A formatted store counts texels and converts values: 300 does not fit into a byte.
    let pixels = image(Geometry::OneD, [2, 1, 1], (BYTE, 4), None);
    let store = "sust.p.1d.v4.b32.trap [%o, {%a0}], {%a0, %a1, %a2, %a3};";
    let (bench, ended, [texels, _]) = run(store, pixels, &[7; 8], &[[1, 300, 255, 2]]);
    ended.unwrap();
    assert_eq!(bench.ints(texels, 2), [0x0707_0707, 0x02ff_ff01]);
}

#[test]
fn extents_are_asked_of_the_object() {
    let volume = image(Geometry::ThreeD, [5, 4, 3], (BYTE, 1), Some(Sampler { normalized: true, ..POINT }));
    let ask = "txq.width.b32 %b0, [%o];\ntxq.height.b32 %b1, [%o];\ntxq.depth.b32 %b2, [%o];\n\
               txq.normalized_coords.b32 %b3, [%o];";
    assert_eq!(words(ask, volume, &[0; 60], &[[0; 4]]), [[5, 4, 3, 1]]);
    let ask = "suq.width.b32 %b0, [%o];\nsuq.height.b32 %b1, [%o];\nsuq.array_size.b32 %b2, [%o];";
    let layers = image(Geometry::TwoDLayered, [5, 4, 3], (BYTE, 1), None);
    assert_eq!(words(ask, layers, &[0; 60], &[[0; 4]]), [[5, 4, 3, 0]]);
}

#[test]
fn an_object_that_does_not_fit_the_instruction_is_a_fault_that_says_why() {
    let cases = [
        (
            Geometry::OneD,
            (Channel::Float, 1),
            Some(POINT),
            "the object is a `1d` one, but the instruction accesses a `2d` one",
        ),
        (Geometry::TwoD, (BYTE, 1), Some(POINT), "the texture returns integers, but the instruction reads floats"),
        (Geometry::TwoD, (Channel::Float, 1), None, "the object is a surface, but the instruction accesses a texture"),
    ];
    for (geometry, format, sampler, why) in cases {
        let (kind, message) = trap(run(TEX_2D, image(geometry, [1, 1, 1], format, sampler), &[0; 4], &[[0; 4]]).1);
        assert_eq!(kind, TrapKind::Illegal);
        assert!(message.contains(why), "{message}");
    }
    let mut bench = bench(TEX_2D);
    let memory = bench.machine.alloc(64).unwrap();
    let plane = image(Geometry::TwoD, [4, 4, 1], (Channel::Float, 1), Some(POINT));
    let handle = bench.machine.create_image(Image { address: memory, ..plane }).unwrap();
    let (places, out) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 4]));
    let launch = |bench: &mut Bench, object| {
        trap(bench.launch("test", [1; 3], [1; 3], &[Arg::Address(object), Arg::Address(places), Arg::Address(out)]))
    };
    assert_eq!(launch(&mut bench, handle).0, TrapKind::Uninitialised);
    assert!(launch(&mut bench, memory).1.contains("is not a texture or surface object"));
    bench.machine.free(memory).unwrap();
    assert_eq!(launch(&mut bench, handle).0, TrapKind::OutOfBounds);
    bench.machine.remove_image(handle);
    assert_eq!(launch(&mut bench, handle).0, TrapKind::Illegal);
}

#[test]
fn an_image_that_cannot_be_is_not_made() {
    let mut bench = bench("");
    let address = bench.machine.alloc(64).unwrap();
    let linear = Sampler { linear: true, ..POINT };
    let plane = image(Geometry::TwoD, [4, 4, 1], (Channel::Float, 1), Some(POINT));
    let refused = [
        (Image { size: [4, 5, 1], ..plane }, "80 bytes at address"),
        (Image { channels: 3, size: [1; 3], ..plane }, "1, 2 or 4 channels"),
        (Image { channel: BYTE, sampler: Some(linear), ..plane }, "linear filtering needs"),
        (
            Image { sampler: Some(Sampler { address: AddressMode::Wrap, ..POINT }), ..plane },
            "need normalized coordinates",
        ),
        (Image { sampler: Some(Sampler { as_float: true, ..POINT }), ..plane }, "8 or 16 bits"),
        (Image { geometry: Geometry::Cube, ..plane }, "six square faces"),
        (Image { geometry: Geometry::Cube, size: [1, 1, 6], sampler: None, ..plane }, "a surface must be"),
        (Image { geometry: Geometry::Linear, sampler: Some(linear), ..plane }, "integer coordinates and no filter"),
    ];
    for (image, why) in refused {
        let error = bench.machine.create_image(Image { address, ..image }).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_fetch_counts_as_an_instruction_and_as_no_request_to_memory() {
    let plane = image(Geometry::TwoD, [1, 1, 1], (Channel::Float, 1), Some(POINT));
    let count = |instructions: &str| run(instructions, plane, &[0; 4], &[[0; 4]]).1.unwrap().counters;
    let (without, with) = (count(""), count(TEX_2D));
    assert_eq!(with.warp_instructions - without.warp_instructions, 1);
    assert_eq!(with.global_load, without.global_load);
}

#[test]
fn lanes_that_write_a_texel_in_two_blocks_race() {
    let surface = image(Geometry::OneD, [4, 1, 1], (BYTE, 4), None);
    let store = "sust.b.1d.b32.trap [%o, {%a0}], %ctaid;";
    let store = store.replace("%ctaid", "%b0");
    let mut bench = bench(&format!("mov.u32 %b0, %ctaid.x;\n{store}\nmov.b32 %b0, 0;"));
    let address = bench.buffer(&[0; 4]);
    let handle = bench.machine.create_image(Image { address, ..surface }).unwrap();
    let (places, out) = (bench.buffer(&[4, 0, 0, 0]), bench.buffer(&[0; 4]));
    let args = [Arg::Address(handle), Arg::Address(places), Arg::Address(out)];
    let notes = bench.launch("test", [2, 1, 1], [1; 3], &args).map(|report| report.notes);
    let text = format!("{notes:?}");
    assert!(text.contains("race") || text.contains("written by"), "{text}");
}
