//! The boot of the search service: thirteen side tasks of real work over the corpus. Two of them go wrong,
//! as startup work does; nothing else may notice.

use std::sync::Arc;

use super::{Expected, SideTask, index, listing, pages, symbols, text};
use crate::app::App;

/// Place of "symbol table", which "suggestions" comes after.
const SYMBOLS: usize = 1;

pub(crate) fn boot(app: &Arc<App>) -> (Vec<SideTask>, Expected) {
    let app = || app.clone();
    let tasks = vec![
        SideTask::new("search index", index::build(app())),
        SideTask::new("symbol table", symbols::build(app())),
        SideTask::new("suggestions", symbols::suggest(app())).after(SYMBOLS),
        SideTask::new("manifests", listing::parse_manifests(app())),
        SideTask::blocking("recent files", {
            let app = app();
            move || listing::list_recent(&app)
        }),
        SideTask::new("synonyms", listing::load_synonyms(app())),
        SideTask::new("saved searches", listing::restore_searches()),
        SideTask::new("usage ping", listing::ping()).when(false),
        SideTask::new("licence scan", text::scan_licences(app())).idle(),
        SideTask::new("duplicates", text::find_duplicates(app())).idle(),
        SideTask::new("line statistics", text::count_lines(app())).idle(),
        SideTask::new("readme pages", pages::render(app())).idle(),
        SideTask::new("snapshot", pages::compress(app())).idle(),
    ];
    debug_assert_eq!(tasks[SYMBOLS].name, "symbol table");
    // All but the false condition, the failure and the panic.
    let expected = Expected { completed: tasks.len() - 3, failed: 1, panicked: 1 };
    (tasks, expected)
}
