//! Layouts of structs: a buffer of structs becomes a buffer of numbers.

use crate::element::{components, element};
use runner_cuda_source::parameter::Field;
use runner_types::ElementType;

/// Element type of a buffer that holds structs with these fields, and number of elements per struct. `None` if unknown,
/// or if the structs contain pointers.
pub fn elements(fields: &[Field]) -> Option<(ElementType, i128)> {
    let mut kinds = Vec::new();
    let (bytes, _) = layout(fields, &mut kinds)?;
    let first = *kinds.first()?;
    let size = |element: ElementType| i128::try_from(element.size()).unwrap_or(1);
    let is_uniform = kinds.iter().all(|kind| *kind == first) && bytes % size(first) == 0;
    let element = match bytes % 4 {
        _ if is_uniform => first,
        // Small integers are harmless even if they are read as floats.
        0 => ElementType::U32,
        _ => ElementType::U8,
    };
    Some((element, bytes / size(element)))
}

/// Size and alignment of a struct. Appends the element types of its fields to `kinds`.
fn layout(fields: &[Field], kinds: &mut Vec<ElementType>) -> Option<(i128, i128)> {
    let (mut bytes, mut widest) = (0_i128, 1);
    for field in fields {
        let (size, align) = match element(&field.base) {
            _ if field.pointers > 0 => return None,
            Some(element) => {
                kinds.push(element);
                let (size, count) = (i128::try_from(element.size()).ok()?, components(&field.base));
                // Three-component vectors have the alignment of one component.
                (size * count, if count == 3 { size } else { (size * count).min(16) })
            }
            None if !field.fields.is_empty() => layout(&field.fields, kinds)?,
            None => return None,
        };
        let count = field.count.unwrap_or(1);
        let begin = (bytes + align - 1) / align * align;
        bytes = begin.checked_add(size.checked_mul(count).filter(|whole| (1..1 << 20).contains(whole))?)?;
        widest = widest.max(align);
    }
    Some(((bytes + widest - 1) / widest * widest, widest))
}
