//! The files of the page, which are part of the program.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::get;

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, type and text of each file.
const FILES: [(&str, &str, &str); 14] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
    ("/app.js", JAVASCRIPT, include_str!("../page/app.js")),
    ("/api.js", JAVASCRIPT, include_str!("../page/api.js")),
    ("/board.js", JAVASCRIPT, include_str!("../page/board.js")),
    ("/chart.js", JAVASCRIPT, include_str!("../page/chart.js")),
    ("/dom.js", JAVASCRIPT, include_str!("../page/dom.js")),
    ("/game.js", JAVASCRIPT, include_str!("../page/game.js")),
    ("/grid.js", JAVASCRIPT, include_str!("../page/grid.js")),
    ("/numbers.js", JAVASCRIPT, include_str!("../page/numbers.js")),
    ("/play.js", JAVASCRIPT, include_str!("../page/play.js")),
    ("/quiz.js", JAVASCRIPT, include_str!("../page/quiz.js")),
    ("/study.js", JAVASCRIPT, include_str!("../page/study.js")),
];

/// The files by their paths. They are asked for again each time: another version of the program may have others.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, &(path, content_type, text)| {
        let file = move || async move { ([(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache")], text) };
        router.route(path, get(file))
    })
}

/// What a browser loads of them.
#[cfg(test)]
pub fn bytes() -> usize {
    FILES.iter().map(|(_, _, text)| text.len()).sum()
}

/// Their paths.
pub fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(path, ..)| path)
}
