//! How a body uses the buffers of its textures and surfaces, which decides how a GPU represents them.
//!
//! A texture of the kind `linear`, or a plane with aligned rows, is the buffer's own memory. Everything else is a CUDA
//! array with its own content. The buffer is copied into it before the body and, if the body has a surface of it, back
//! afterwards. That is correct if the body only reads the buffer, or uses it only through one array. Otherwise the
//! buffer is mixed: each launch with an array of it then copies for itself, as any program has to.

use std::collections::BTreeMap;

use super::BufferId;
use super::argument::LaunchArg;
use runner_types::{Texture, TextureKind};

/// Alignment of a plane's rows in bytes (`CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`).
const PITCH: u64 = 32;

/// Uses of each buffer by a body or a part of one.
#[derive(Debug, Default)]
pub(crate) struct Views(BTreeMap<BufferId, Uses>);

#[derive(Debug, Default)]
struct Uses {
    textures: Vec<Texture<BufferId>>,
    /// Whether anything may access its memory by address.
    by_address: bool,
}

/// An array with the texels of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayView {
    /// Buffer and arrangement of the texels, without a sampler.
    pub texels: Texture<BufferId>,
    /// Whether the body has surfaces of the buffer.
    pub has_surfaces: bool,
}

/// An array, and whether it is a surface, so that it is copied back.
pub(crate) type UsedArray = (ArrayView, bool);

impl Uses {
    fn has_surfaces(&self) -> bool {
        self.textures.iter().any(|texture| texture.sampler.is_none())
    }

    fn array(&self, texture: &Texture<BufferId>) -> Option<ArrayView> {
        let row = u64::from(texture.shape[0]) * u64::from(texture.channels) * texture.element.size() as u64;
        let has_surfaces = self.has_surfaces();
        let is_memory = match texture.kind {
            TextureKind::Linear => true,
            TextureKind::TwoD => row.is_multiple_of(PITCH) && !has_surfaces,
            _ => false,
        };
        let texels = Texture { sampler: None, ..texture.clone() };
        (!is_memory).then_some(ArrayView { texels, has_surfaces })
    }

    /// Arrays that these textures and surfaces of the buffer use.
    fn arrays_of(&self, textures: &[Texture<BufferId>]) -> Vec<UsedArray> {
        let mut arrays: Vec<UsedArray> = Vec::new();
        for texture in textures {
            let Some(array) = self.array(texture) else { continue };
            let is_surface = texture.sampler.is_none();
            match arrays.iter_mut().find(|(known, _)| *known == array) {
                Some((_, is_stored)) => *is_stored |= is_surface,
                None => arrays.push((array, is_surface)),
            }
        }
        arrays
    }

    fn is_mixed(&self) -> bool {
        let arrays = self.arrays_of(&self.textures).len();
        let fetches_memory = || self.textures.iter().any(|texture| self.array(texture).is_none());
        arrays > 0 && (self.by_address || self.has_surfaces() && (arrays > 1 || fetches_memory()))
    }
}

impl Views {
    pub fn add(&mut self, arguments: &[LaunchArg]) {
        for argument in arguments {
            match argument {
                LaunchArg::Buffer(buffer) | LaunchArg::Offset(buffer, _) => self.note_address(*buffer),
                LaunchArg::Struct(value) => value.buffers().for_each(|buffer| self.note_address(buffer)),
                LaunchArg::Texture(texture) => {
                    let known = &mut self.0.entry(texture.buffer).or_default().textures;
                    if !known.contains(texture) {
                        known.push(texture.clone());
                    }
                }
                LaunchArg::Scalar(_) => {}
            }
        }
    }

    /// Uses by the arguments of one launch or call.
    pub fn of_arguments(arguments: &[LaunchArg]) -> Self {
        let mut views = Self::default();
        views.add(arguments);
        views
    }

    /// Records that a buffer is used by its address.
    pub fn note_address(&mut self, buffer: BufferId) {
        self.0.entry(buffer).or_default().by_address = true;
    }

    /// Buffers that are textures or surfaces.
    pub fn buffers(&self) -> Vec<BufferId> {
        self.0.iter().filter(|(_, uses)| !uses.textures.is_empty()).map(|(buffer, _)| *buffer).collect()
    }

    /// Array of a texture or surface; `None` if it uses the buffer's own memory.
    pub fn array(&self, texture: &Texture<BufferId>) -> Option<ArrayView> {
        self.0.get(&texture.buffer)?.array(texture)
    }

    /// Arrays that are copied once, before and after the body.
    pub fn steady(&self) -> Vec<UsedArray> {
        self.0.values().filter(|uses| !uses.is_mixed()).flat_map(|uses| uses.arrays_of(&uses.textures)).collect()
    }

    /// Arrays of mixed buffers among the arguments of a launch, which are copied around it.
    pub fn mixed(&self, arguments: &[LaunchArg]) -> Vec<UsedArray> {
        let own = Self::of_arguments(arguments).0;
        let mixed = own.iter().filter_map(|(buffer, own)| {
            let uses = self.0.get(buffer).filter(|uses| uses.is_mixed())?;
            Some(uses.arrays_of(&own.textures))
        });
        mixed.flatten().collect()
    }

    /// Whether a launch has a surface of a buffer that it may also write in another way, so that one copy would undo
    /// the other.
    pub fn conflicts(&self) -> bool {
        self.0.values().any(|uses| {
            let mut surfaces = uses.textures.iter().filter(|texture| texture.sampler.is_none());
            let first = surfaces.next();
            first.is_some_and(|_| uses.by_address) || surfaces.next().is_some()
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::work::views;
    use crate::{Condition, Iteration, KernelId, Launch, Loop, Read, Step};
    use runner_types::{Dim3, ElementType, TextureSampler};

    const IMAGE: BufferId = BufferId(7);
    const TEXTURE: Option<TextureSampler> = Some(TextureSampler {
        filter: runner_types::TextureFilter::Point,
        address: runner_types::TextureAddress::Clamp,
        normalized: false,
        as_float: false,
    });

    fn view(kind: TextureKind, width: u32, sampler: Option<TextureSampler>) -> LaunchArg {
        let (shape, element) = ([width, 6, 1], ElementType::F32);
        LaunchArg::Texture(Texture { buffer: IMAGE, kind, shape, element, channels: 1, sampler })
    }

    fn launch(args: &[LaunchArg]) -> Step {
        let one = Dim3::new(1, 1, 1);
        Step::Launch(Launch::new(KernelId(1), one, one, args.to_vec()))
    }

    /// For each array of a body: its kind, whether it is copied back, and whether that happens once.
    fn copies(steps: &[Step]) -> Vec<(&'static str, bool, bool)> {
        let views = views(steps);
        let named = |((array, is_stored), once): (UsedArray, bool)| (array.texels.kind.name(), is_stored, once);
        let args = |step: &Step| if let Step::Launch(launch) = step { launch.args.clone() } else { Vec::new() };
        let mixed = steps.iter().flat_map(|step| views.mixed(&args(step))).map(|used| (used, false));
        views.steady().into_iter().map(|used| (used, true)).chain(mixed).map(named).collect()
    }

    #[test]
    fn what_is_read_only_or_is_one_array_is_copied_once() {
        use TextureKind::{Linear, ThreeD, TwoD};
        assert_eq!(copies(&[launch(&[view(TwoD, 8, TEXTURE), view(Linear, 7, TEXTURE)])]), []);
        assert_eq!(copies(&[launch(&[view(TwoD, 7, TEXTURE)])]), [("2d", false, true)]);
        assert_eq!(copies(&[launch(&[view(TwoD, 8, None)])]), [("2d", true, true)]);
        let several =
            [launch(&[view(TwoD, 7, TEXTURE), view(Linear, 7, TEXTURE)]), launch(&[view(ThreeD, 7, TEXTURE)])];
        assert_eq!(copies(&several), [("2d", false, true), ("3d", false, true)]);
        // With a surface of the buffer, an aligned plane uses that surface's array, not memory.
        let both = [launch(&[view(TwoD, 8, None)]), launch(&[view(TwoD, 8, TEXTURE)])];
        assert_eq!(copies(&both), [("2d", true, true)]);
    }

    #[test]
    fn what_is_used_in_another_way_too_is_copied_around_each_launch() {
        use TextureKind::{Linear, ThreeD, TwoD};
        let (surface, texture) = (launch(&[view(TwoD, 8, None)]), launch(&[view(TwoD, 8, TEXTURE)]));
        let copied = [surface.clone(), Step::Copy { from: IMAGE, to: BufferId(8) }, texture];
        assert_eq!(copies(&copied), [("2d", true, false), ("2d", false, false)]);
        let written = [launch(&[LaunchArg::Offset(IMAGE, 4)]), launch(&[view(ThreeD, 7, TEXTURE)])];
        assert_eq!(copies(&written), [("3d", false, false)]);
        assert_eq!(copies(&[surface.clone(), launch(&[view(Linear, 8, TEXTURE)])]), [("2d", true, false)]);
        let shapes = [surface.clone(), launch(&[view(ThreeD, 8, TEXTURE)])];
        assert_eq!(copies(&shapes), [("2d", true, false), ("3d", false, false)]);
        let until = Condition {
            program: runner_lang::Program::parse("image > 0").unwrap(),
            scope: runner_lang::Scope::default(),
            reads: vec![Read { name: "image".to_owned(), buffer: IMAGE, element: ElementType::F32 }],
        };
        let iterations = vec![Iteration { steps: vec![surface], until }];
        let views = views(&[Step::Loop(Box::new(Loop { iterations, at_most: 3 }))]);
        assert_eq!((views.steady(), views.mixed(&[view(TwoD, 8, None)]).len()), (Vec::new(), 1));
    }

    #[test]
    fn a_launch_that_may_write_a_buffer_in_two_ways_is_a_conflict() {
        use TextureKind::{ThreeD, TwoD};
        let conflicts = |args: &[LaunchArg]| Views::of_arguments(args).conflicts();
        let surface = || view(TwoD, 8, None);
        assert!(conflicts(&[surface(), LaunchArg::Buffer(IMAGE)]));
        assert!(conflicts(&[surface(), view(ThreeD, 8, None)]));
        assert!(!conflicts(&[surface(), surface(), view(ThreeD, 8, TEXTURE), LaunchArg::Buffer(BufferId(8))]));
        assert!(!conflicts(&[view(TwoD, 7, TEXTURE), LaunchArg::Buffer(IMAGE)]));
    }
}
