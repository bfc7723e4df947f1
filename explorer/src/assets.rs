//! The files of the page, embedded in the program.

use exact2048_net::pages::{Asset, SHARED};

/// Files that only this page uses.
const FILES: [Asset; 16] = [
    Asset { path: "/", text: include_str!("../page/index.html") },
    Asset { path: "/style.css", text: include_str!("../page/style.css") },
    Asset { path: "/app.js", text: include_str!("../page/app.js") },
    Asset { path: "/board.js", text: include_str!("../page/board.js") },
    Asset { path: "/chart.js", text: include_str!("../page/chart.js") },
    Asset { path: "/course.js", text: include_str!("../page/course.js") },
    Asset { path: "/game.js", text: include_str!("../page/game.js") },
    Asset { path: "/grid.js", text: include_str!("../page/grid.js") },
    Asset { path: "/numbers.js", text: include_str!("../page/numbers.js") },
    Asset { path: "/perfect.js", text: include_str!("../page/perfect.js") },
    Asset { path: "/play.js", text: include_str!("../page/play.js") },
    Asset { path: "/positions.js", text: include_str!("../page/positions.js") },
    Asset { path: "/quiz.js", text: include_str!("../page/quiz.js") },
    Asset { path: "/record.js", text: include_str!("../page/record.js") },
    Asset { path: "/study.js", text: include_str!("../page/study.js") },
    Asset { path: "/train.js", text: include_str!("../page/train.js") },
];

/// All files.
pub fn all() -> impl Iterator<Item = Asset> {
    FILES.into_iter().chain(SHARED)
}
