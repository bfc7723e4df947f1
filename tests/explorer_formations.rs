//! Formations on the explorer's page: positions of a real game, and training, in a real browser.

use crate::{common, explorer_page};

use common::browser::Browser;
use common::http::escape;
use common::serving::Server;
use common::{Solved, on_run, text};
use explorer_page::{BOARD, HTTP, SHOWN, check, look};

/// A formation is played, edited and studied. No tile slides into a stone, no lock slides, and loose stones slide.
#[tokio::test]
async fn formations_are_played_on_the_page() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let locked = Solved::new("--board 2x3:..x/...");
    let walled = Solved::new("--board 2x4:.#../...#");
    let loose = Solved::new("--board 3x3+4x --objective reach:32");
    let mut servers = Vec::new();
    for (solved, stone) in [(&locked, "x"), (&walled, "#"), (&loose, "x")] {
        let server = Server::start(&solved.run(), &HTTP);
        browser.goto(&server.page.clone().unwrap()).await;
        browser.until(SHOWN).await;
        let mut pages = vec![look(&browser).await];
        // A game may end after its first moves; then another one begins.
        for _ in 0..40 {
            let before = format!("{BOARD} !== {:?}", text(&pages[pages.len() - 1]["board"]));
            if pages.len() > 12 {
                break;
            }
            if pages[pages.len() - 1]["over"] == true {
                browser.press(&['n']).await;
                browser.until(&format!("document.querySelector('#undo').disabled && ({SHOWN})")).await;
                pages.push(look(&browser).await);
                continue;
            }
            browser.press(&[' ']).await;
            browser.until(&format!("({before}) && ({SHOWN})")).await;
            pages.push(look(&browser).await);
        }
        assert!(pages.len() > 3 && pages.iter().all(|page| text(&page["board"]).contains(stone)));
        check(&solved.run(), &pages);
        browser.click("#to-study").await;
        browser.until("document.querySelectorAll('#positions .board.small').length > 0").await;
        assert!(browser.text("positions").await.contains(stone));
        browser.click("#search-form button").await;
        browser.until("document.querySelector('#search-note').textContent !== ''").await;
        assert!(!browser.text("search-note").await.contains("expected"));
        servers.push(server);
    }
    browser.close().await;
    servers.into_iter().for_each(|server| drop(server.stop()));
}

/// A server with two formations. The names are those of their locks: a corner and a row.
fn serve_two(objective: &str) -> ([Solved; 2], Server) {
    let solved = [".../..x/.xx", ".../.../xxx"]
        .map(|picture| Solved::new(&format!("--board 3x3:{picture} --objective {objective}")));
    let runs = [("row", &solved[1]), ("corner", &solved[0])];
    let [row, corner] = runs.map(|(name, solved)| format!("{name}={}", solved.run().display()));
    let args = ["serve", "--run", &row, "--run", &corner, "--listen", "127.0.0.1:0"];
    let server = Server::launch(&[&args, &HTTP[..]].concat(), &[]);
    (solved, server)
}

/// Pastes a board into the form of the page.
async fn paste(browser: &Browser, board: &str) {
    browser.press(&['e']).await;
    browser.until("!document.querySelector('#edit-form').hidden").await;
    browser.js(&format!("void (document.querySelector('#board-text').value = {board:?})")).await;
    browser.js("document.querySelector('#edit-form').requestSubmit()").await;
}

/// The page finds the formation that fits a pasted position, and plays the position with its large tiles.
#[tokio::test]
async fn positions_of_a_real_game_are_pasted() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let ([corner, _], server) = serve_two("reach:32");
    let url = server.page.clone().unwrap();
    browser.goto(&url).await;
    browser.until(SHOWN).await;
    paste(&browser, "8 0 2 / 32 2 0 / 128 64 4").await;
    browser
        .until(&format!("{BOARD} === '8 0 2 / 32 2 0 / 128 64 4' && location.hash.includes('run=corner')"))
        .await;
    browser.until(SHOWN).await;
    assert!(browser.text("message").await.contains("corner fits"));
    let mut pages = vec![look(&browser).await];
    while pages.len() < 30 && pages[pages.len() - 1]["over"] == false {
        let before = format!("{BOARD} !== {:?}", text(&pages[pages.len() - 1]["board"]));
        browser.press(&[' ']).await;
        browser.until(&format!("({before}) && (({SHOWN}) || !document.querySelector('#over').hidden)")).await;
        pages.push(look(&browser).await);
    }
    assert!(pages.len() > 1, "{pages:?}");
    for page in pages.iter().filter(|page| page["over"] == false) {
        let board = text(&page["board"]);
        assert!(["32", "64", "128"].iter().all(|tile| board.contains(tile)), "{board}");
        let told = on_run(&corner.run(), "query", &["--json", board]).exits(0).json();
        for (shown, made) in page["moves"].as_array().unwrap().iter().zip(told["moves"].as_array().unwrap()) {
            assert_eq!([&shown["move"], &shown["best"]], [&made["move"], &made["best"]], "{told}");
        }
    }
    // The link opens the position again.
    browser.goto(&format!("{url}#view=play&run=corner&board={}", escape("2 0 4 / 0 2 64 / 8 32 128"))).await;
    browser.reload().await;
    browser.until(&format!("{BOARD} === '2 0 4 / 0 2 64 / 8 32 128' && ({SHOWN})")).await;
    paste(&browser, "2 32 0 / 0 64 2 / 8 4 128").await;
    browser.until("document.querySelector('#message').textContent.includes('found them elsewhere')").await;
    browser.close().await;
    server.stop();
}

/// Values are hidden until the move is made. Then the page judges it, and lists the worst mistakes.
#[tokio::test]
async fn moves_are_trained() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let ([corner, _], server) = serve_two("reach:32");
    let start = "2 0 0 / 2 0 x / 4 x x";
    let url = format!("{}#view=play&run=corner&board={}", server.page.clone().unwrap(), escape(start));
    browser.goto(&url).await;
    browser.until(SHOWN).await;
    browser.press(&['h']).await;
    browser.until("!document.querySelector('#train-panel').hidden").await;
    assert_eq!(browser.js("document.querySelector('#hint-panel').hidden").await, true);
    assert!(browser.text("train-last").await.contains("Make a move"));
    let told = on_run(&corner.run(), "query", &["--json", start]).exits(0).json();
    let moves = told["moves"].as_array().unwrap();
    let best = moves.iter().filter_map(|made| made["value"].as_f64()).fold(0.0, f64::max);
    let key = |made: &str| match made {
        "left" => '\u{e012}',
        "up" => '\u{e013}',
        "right" => '\u{e014}',
        _ => '\u{e015}',
    };
    let mut mistakes = 0;
    for made in moves.iter().filter(|made| made["legal"] == true) {
        let name = text(&made["move"]);
        browser.press(&[key(name)]).await;
        browser
            .until(&format!("document.querySelector('#train-last').textContent.startsWith('{name} ')"))
            .await;
        let judged = browser.text("train-last").await;
        if made["best"] == true {
            assert!(judged.contains("best move"), "{judged}");
        } else {
            mistakes += 1;
            let share = 100.0 * made["value"].as_f64().unwrap() / best;
            let shown: f64 = judged.split(' ').nth(2).unwrap().trim_end_matches('%').parse().unwrap();
            assert!((shown - share).abs() < 0.05, "{judged}: {share}");
            // The list of mistakes leads back to the board.
            browser.click("#train-mistakes button").await;
            browser.until(&format!("{BOARD} === {start:?}")).await;
            continue;
        }
        assert!(browser.text("train-streak").await.starts_with('1'));
        browser.press(&['u']).await;
        browser.until(&format!("{BOARD} === {start:?}")).await;
    }
    assert!(mistakes > 0, "{told}");
    // A sampled position begins another game.
    browser.click("#any").await;
    browser.until(&format!("{BOARD} !== {start:?} && document.querySelector('#undo').disabled")).await;
    browser.press(&['h']).await;
    browser
        .until(
            "document.querySelector('#train-panel').hidden && document.querySelector('#hint-panel').hidden",
        )
        .await;
    browser.press(&['h']).await;
    browser.until("!document.querySelector('#hint-panel').hidden").await;
    browser.close().await;
    server.stop();
}
