//! Objects of given classes among all that Python's garbage collector reaches.

use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use super::detach::guarded;

/// What was found so far, and the containers that are still to be searched.
struct Search {
    kinds: Vec<*mut ffi::PyTypeObject>,
    found: HashSet<*mut ffi::PyObject>,
    untracked: HashSet<*mut ffi::PyObject>,
    waiting: Vec<*mut ffi::PyObject>,
}

impl Search {
    /// Looks at one object.
    ///
    /// A tuple or a dictionary whose contents the collector does not know is no longer known to it
    /// either: one that an object holds is searched with that object.
    ///
    /// # Safety
    ///
    /// The object is alive.
    unsafe fn look_at(&mut self, object: *mut ffi::PyObject) {
        // SAFETY: the caller's promise.
        let kind = unsafe { ffi::Py_TYPE(object) };
        if self.kinds.contains(&kind) {
            self.found.insert(object);
        } else if kind == &raw mut ffi::PyTuple_Type || kind == &raw mut ffi::PyDict_Type {
            // SAFETY: a tuple or a dictionary, alive.
            let tracked = unsafe { ffi::PyObject_GC_IsTracked(object) } != 0;
            if !tracked && self.untracked.insert(object) {
                self.waiting.push(object);
            }
        }
    }
}

/// The collector's visitor: `search` is a `Search`.
extern "C" fn visit(object: *mut ffi::PyObject, search: *mut c_void) -> c_int {
    // SAFETY: `find_instances` passes a search that nothing else uses meanwhile, and an object that
    // shows another to a visitor keeps it alive.
    unsafe { (*search.cast::<Search>()).look_at(object) };
    0
}

/// Returns each object of `kinds`, exactly, among `objects` and what they refer to.
///
/// No code of Python's runs during the search, so that whatever is alive stays so.
#[pyfunction]
fn find_instances<'py>(
    py: Python<'py>,
    objects: &Bound<'py, PyList>,
    kinds: Vec<Bound<'py, PyType>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    guarded(|| {
        let mut search = Search {
            kinds: kinds.iter().map(Bound::as_type_ptr).collect(),
            found: HashSet::new(),
            untracked: HashSet::new(),
            waiting: Vec::new(),
        };
        let mut traversals = HashMap::new();
        for object in objects.iter() {
            // SAFETY: the list keeps its objects alive; what an object refers to is alive with it.
            // A class's slot `tp_traverse` is a `traverseproc` or null.
            unsafe {
                search.look_at(object.as_ptr());
                search.waiting.push(object.as_ptr());
                while let Some(holder) = search.waiting.pop() {
                    let kind = ffi::Py_TYPE(holder);
                    let traverse = *traversals.entry(kind).or_insert_with(|| {
                        let slot = ffi::PyType_GetSlot(kind, ffi::Py_tp_traverse);
                        std::mem::transmute::<*mut c_void, Option<ffi::traverseproc>>(slot)
                    });
                    if let Some(traverse) = traverse {
                        traverse(holder, visit, (&raw mut search).cast());
                    }
                }
            }
        }
        // SAFETY: pointers to objects that are alive.
        let own = |object| unsafe { Bound::from_borrowed_ptr(py, object) };
        Ok(search.found.into_iter().map(own).collect())
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(find_instances, module)?)
}
