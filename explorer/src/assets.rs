//! The files of the page, embedded in the program.

use exact2048_net::pages::{Asset, SHARED};

/// Files that only this page uses.
const FILES: [Asset; 16] = [
    Asset::html("/", include_str!("../page/index.html")),
    Asset::css("/style.css", include_str!("../page/style.css")),
    Asset::javascript("/app.js", include_str!("../page/app.js")),
    Asset::javascript("/board.js", include_str!("../page/board.js")),
    Asset::javascript("/chart.js", include_str!("../page/chart.js")),
    Asset::javascript("/course.js", include_str!("../page/course.js")),
    Asset::javascript("/game.js", include_str!("../page/game.js")),
    Asset::javascript("/grid.js", include_str!("../page/grid.js")),
    Asset::javascript("/numbers.js", include_str!("../page/numbers.js")),
    Asset::javascript("/perfect.js", include_str!("../page/perfect.js")),
    Asset::javascript("/play.js", include_str!("../page/play.js")),
    Asset::javascript("/positions.js", include_str!("../page/positions.js")),
    Asset::javascript("/quiz.js", include_str!("../page/quiz.js")),
    Asset::javascript("/record.js", include_str!("../page/record.js")),
    Asset::javascript("/study.js", include_str!("../page/study.js")),
    Asset::javascript("/train.js", include_str!("../page/train.js")),
];

/// All files.
pub fn all() -> impl Iterator<Item = Asset> {
    FILES.into_iter().chain(SHARED)
}
