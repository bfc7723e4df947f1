//! The explorer's page in a real browser. The tests play, edit and study as users do.

use crate::common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::browser::Browser;
use common::certificates::token_file;
use common::http::escape;
use common::query_calls::{run, serve};
use common::serving::Server;
use common::snapshots::assert_section;
use common::{Place, Solved, close, exact2048, number, on_run, query, text};
use serde_json::Value;

pub const HTTP: [&str; 2] = ["--http", "127.0.0.1:0"];
const LEFT: char = '\u{e012}';
const UP: char = '\u{e013}';
const RIGHT: char = '\u{e014}';
const DOWN: char = '\u{e015}';
const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';

/// Script that is true once the page shows the values of the board, or the game is over.
pub const SHOWN: &str = "(document.querySelector('#moves .best') !== null && !document.querySelector('#best').disabled) \
                     || !document.querySelector('#over').hidden && parseFloat(document.querySelector('#value').textContent) === 0";

/// Script for the shown board, as text.
pub const BOARD: &str = "(() => { const board = document.querySelector('#board'); \
    const columns = Number(board.style.getPropertyValue('--columns')); \
    const tile = (tile, i) => (i === 0 ? '' : i % columns ? ' ' : ' / ') + (tile.textContent || '0'); \
    return [...board.children].map(tile).join(''); })()";

/// Script for the shown board, and the facts about it on the page.
const PAGE: &str = "({ \
    board: BOARD, \
    score: document.querySelector('#score').textContent, \
    value: document.querySelector('#value').textContent, \
    lost: document.querySelector('#lost').textContent, \
    over: !document.querySelector('#over').hidden, \
    moves: [...document.querySelectorAll('#moves tr')].map((row) => ({ move: row.dataset.move, \
        best: row.classList.contains('best'), worth: row.children[1].textContent, loses: row.children[2].textContent })) })";

/// The facts that the page shows about its board.
pub async fn look(browser: &Browser) -> Value {
    browser.js(&PAGE.replace("BOARD", BOARD)).await
}

/// Reads a number or a percentage from the page.
fn read(text: &str) -> f64 {
    let plain = text.replace(',', "").replace('−', "-");
    let (number, unit) = plain.strip_suffix('%').map_or((&*plain, 1.0), |number| (number, 0.01));
    unit * number.parse::<f64>().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Largest error of a number that the page rounds.
fn rounding(text: &str) -> f64 {
    if text.ends_with('%') { 0.000_51 } else { 0.051 }
}

fn said(page: &Value, name: &str) -> f64 {
    read(text(&page[name]))
}

/// Requires that the facts on pages equal the answers of `query`.
pub fn check(run: &std::path::Path, pages: &[Value]) {
    let boards: Vec<String> = pages.iter().map(|page| text(&page["board"]).to_owned()).collect();
    for (page, told) in pages.iter().zip(query(run, &boards)) {
        let rounding = rounding(text(&page["value"]));
        close(said(page, "value"), number(&told["value"]), rounding, &told.to_string());
        let best = told["moves"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|made| made["value"].as_f64())
            .fold(f64::MIN, f64::max);
        for (shown, made) in page["moves"].as_array().unwrap().iter().zip(told["moves"].as_array().unwrap()) {
            assert_eq!((&shown["move"], &shown["best"]), (&made["move"], &made["best"]), "{told}");
            match made["value"].as_f64() {
                Some(value) => {
                    close(said(shown, "worth"), value, rounding, &told.to_string());
                    let loses = text(&shown["loses"]);
                    let loss = if loses.contains('<') { 0.0 } else { -read(loses) };
                    close(loss, best - value, rounding, &told.to_string());
                }
                None => assert_eq!(shown["worth"], "not legal"),
            }
        }
    }
}

#[tokio::test]
async fn a_game_is_played_to_its_end_by_keys() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let server = serve(&HTTP);
    let url = server.page.clone().unwrap();
    browser.goto(&url).await;
    browser.until(SHOWN).await;
    let mut pages = Vec::new();
    loop {
        let page = look(&browser).await;
        let (is_over, before) = (page["over"] == true, text(&page["board"]).to_owned());
        pages.push(page);
        assert!(pages.len() < 5_000, "the game does not end");
        if is_over {
            break;
        }
        browser.press(&[' ']).await;
        let other = format!("{BOARD} !== '{before}' && ({SHOWN})");
        browser.until(&other).await;
    }
    let moves = pages.len() - 1;
    assert!(moves > 20, "{moves} moves");
    check(&run().run(), &pages);
    assert_eq!(pages[moves]["lost"], "0", "best moves lose nothing");

    // Goes back to the start and to the end again.
    browser.press(&vec!['u'; moves]).await;
    browser.until(&format!("{BOARD} === '{}'", text(&pages[0]["board"]))).await;
    assert_eq!(browser.js("document.querySelector('#undo').disabled").await, true);
    browser.press(&vec!['r'; moves]).await;
    browser.until(&format!("{BOARD} === '{}'", text(&pages[moves]["board"]))).await;
    assert_eq!(browser.text("score").await, text(&pages[moves]["score"]));
    assert_eq!(browser.text("over").await, "Game over: no move is legal.");

    // Measures the time from the key to the values, and the received data.
    let times =
        browser.js("performance.getEntriesByName('key to values').map((entry) => entry.duration)").await;
    let mut times: Vec<f64> = times.as_array().unwrap().iter().map(number).collect();
    times.sort_by(f64::total_cmp);
    assert_eq!(times.len(), moves);
    let (median, most) = (times[moves / 2], times[moves - 1]);
    println!(
        "from the key to the values: {median:.1} ms in the middle, {most:.1} ms at most, of {moves} moves"
    );
    browser.close().await;
    server.stop();
}

#[tokio::test]
async fn games_are_exported_and_imported_and_losses_added_up() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let server = serve(&HTTP);
    let url = server.page.clone().unwrap();
    let place = Place::new();
    let record = place.join("games.jsonl");
    let record = record.to_str().unwrap();
    exact2048(["play", "--player", "greedy", "--board", "3x2", "--games", "1", "--record", record]).exits(0);
    let game: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    browser.goto(&url).await;
    browser.until(SHOWN).await;
    browser.write("#import", record).await;
    browser.until("document.querySelector('#message').textContent.startsWith('A game of')").await;
    browser.click("#course-moves summary").await;
    let moves = text(&game["moves"]).len();
    browser.until(&format!("document.querySelectorAll('#course-table tr').length === {moves}")).await;
    browser.until("![...document.querySelectorAll('#course-table td:last-child')].some((cell) => cell.textContent === '–')").await;
    let page = look(&browser).await;
    assert_eq!((&page["board"], said(&page, "score")), (&game["last"], number(&game["score"])));
    let boards = browser.js("[...document.querySelectorAll('#course-table tr')].reverse().map((row) => [row.children[1].textContent, row.children[2].textContent])").await;
    let (boards, made): (Vec<String>, Vec<String>) = boards
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row[0]).to_owned(), text(&row[1]).to_owned()))
        .unzip();
    let lost: f64 = query(&run().run(), &boards)
        .iter()
        .zip(&made)
        .map(|(told, made)| {
            let values: BTreeMap<&str, f64> = told["moves"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|of| Some((text(&of["move"]), of["value"].as_f64()?)))
                .collect();
            values.values().copied().fold(f64::MIN, f64::max) - values[made.as_str()]
        })
        .sum();
    close(-said(&page, "lost"), lost, 0.051, "lost by greedy");

    browser.click("#export").await;
    let file = browser.folder.path().join("game.jsonl");
    let begun = Instant::now();
    let exported: Value = loop {
        if let Some(game) = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            break game;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no file");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    for name in ["board", "score", "start", "moves", "spawns", "last", "cut_short"] {
        assert_eq!(exported[name], game[name], "{name}");
    }

    for (bytes, says) in [
        (&b"\0\xff garbage"[..], "This is not a game"),
        (b"", "This is not a game"),
        (b"[1, 2]", "on a board of"),
        (br#"{"board":"4x4","start":[],"moves":"","spawns":[]}"#, "on a board of 4x4"),
        (br#"{"board":"3x2","start":[[0,2],[1,3]],"moves":"","spawns":[]}"#, "is not a tile"),
        (br#"{"board":"3x2","start":[[0,2],[1,2]],"moves":"L","spawns":[]}"#, "as many"),
        (br#"{"board":"3x2","start":[[0,2],[1,2]],"moves":"X","spawns":[[0,2]]}"#, "expected L, R, U or D"),
        (br#"{"board":"3x2","start":[[0,2],[1,2]],"moves":"L","spawns":[[0,2]]}"#, "is not possible on"),
        (br#"{"board":"<img src=x onerror=alert(1)>","start":[]}"#, "<img src=x onerror="),
    ] {
        let file = place.join("bad.jsonl");
        std::fs::write(&file, bytes).unwrap();
        browser.js("document.querySelector('#message').textContent = ''").await;
        browser.write("#import", file.to_str().unwrap()).await;
        browser.until("document.querySelector('#message').textContent !== ''").await;
        let said = browser.text("message").await;
        assert!(said.contains(says), "{said}");
        assert_eq!(browser.js("document.querySelector('img')").await, Value::Null);
    }
    browser.close().await;
    server.stop();
}

/// With the keyboard alone, on a narrow screen, a user can edit boards, place tiles and make moves.
#[tokio::test]
async fn a_narrow_screen_and_the_keyboard_alone_are_enough() {
    let Some(browser) = Browser::open(320, 640).await else { return };
    let server = serve(&HTTP);
    let url = server.page.clone().unwrap();
    let at = |board: &str| format!("{url}#view=play&run=run&board={}", escape(board));
    browser.goto(&at("2 0 / 0 2 / 0 0")).await;
    browser.until(SHOWN).await;
    for view in ["play", "study", "quiz"] {
        browser.js(&format!("location.hash = '#view={view}'")).await;
        browser.until(&format!("!document.querySelector('#{view}').hidden")).await;
        if view == "study" {
            // Waits for the contents that load last.
            browser.until("!document.querySelector('#perfect').hidden").await;
        }
        let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        assert_eq!(browser.js(fits).await, true, "{view} is wider than the screen");
    }
    browser.js("location.hash = '#view=play'").await;
    browser.until("!document.querySelector('#play').hidden").await;

    // Types 32 8 / 2 4 / 0 0, cell by cell.
    browser.press(&['e']).await;
    browser.until("document.activeElement.matches('#board button')").await;
    for shown in ["#hint-panel", "#course"] {
        let is_hidden = browser.js(&format!("document.querySelector('{shown}').hidden")).await;
        assert_eq!(is_hidden, true, "{shown} is of the board before");
    }
    browser.press(&['e']).await;
    browser
        .until(&format!("{BOARD} === '2 0 / 0 2 / 0 0' && document.querySelector('#edit-form').hidden"))
        .await;
    browser.press(&['e']).await;
    browser.until("document.activeElement.matches('#board button')").await;
    // Digits form tiles. No tile begins with 5, so 3 and 2 begin a new tile.
    browser.press(&['5', '3', '2', RIGHT, '1', '6', '8', DOWN, '4', LEFT, '4', '-']).await;
    browser.until("document.querySelector('#board-text').value === '32 8 / 2 4 / 0 0'").await;
    let apply = "document.activeElement === document.querySelector('#edit-form button')";
    for _ in 0..40 {
        if browser.js(apply).await == true {
            break;
        }
        browser.press(&[TAB]).await;
    }
    assert_eq!(browser.js(apply).await, true, "the button cannot be reached by Tab");
    browser.press(&[ENTER]).await;
    browser.until(&format!("location.hash.includes('32') && ({SHOWN})")).await;
    check(&run().run(), &[look(&browser).await]);
    let board = browser.js("document.querySelector('#board').getAttribute('aria-label')").await;
    assert_eq!(board, "Row 1: 32, 8. Row 2: 2, 4. Row 3: empty, empty.");
    let live = browser.js("document.querySelector('#live').textContent").await;
    assert!(text(&live).contains("Value") && text(&live).contains("Best: "), "{live}");

    // Places a tile by hand: a 4 in the first empty cell after the move down.
    browser.js("void (document.querySelector('#spawning').value = 'hand')").await;
    browser.js("document.querySelector('#board').focus()").await;
    browser.press(&[DOWN]).await;
    browser.until("document.activeElement.matches('#board button')").await;
    browser.press(&['4']).await;
    browser.until(&format!("{BOARD} === '4 0 / 32 8 / 2 4' && ({SHOWN})")).await;
    check(&run().run(), &[look(&browser).await]);

    // Undoes the move, then uses a finger instead of a key.
    browser.press(&['u']).await;
    browser.until(&format!("{BOARD} === '32 8 / 2 4 / 0 0'")).await;
    browser.js("void (document.querySelector('#spawning').value = 'chance')").await;
    browser.js("window.scrollTo(0, 0)").await;
    let middle = browser.js("(({ x, y, width, height }) => [x + width / 2, y + height / 2].map(Math.round))(document.querySelector('#board').getBoundingClientRect())").await;
    let [x, y] = [0, 1].map(|i| middle[i].as_i64().unwrap());
    browser.swipe([x, y], [x, y + 90]).await;
    browser.until(&format!("/^[24] |^0 [24] /.test({BOARD})")).await;

    // Enters an invalid board and an unreachable board.
    browser.press(&['e']).await;
    browser.js("void (document.querySelector('#board-text').value = '3 3 / 0 0 / 0 0')").await;
    browser.js("document.querySelector('#edit-form').requestSubmit()").await;
    browser.until("document.querySelector('#message').textContent.includes('is not a tile')").await;
    browser.js("void (document.querySelector('#board-text').value = '64 64 / 64 64 / 64 64')").await;
    browser.js("document.querySelector('#edit-form').requestSubmit()").await;
    browser
        .until("document.querySelector('#answer-note').textContent.includes('is not reachable in this run')")
        .await;
    // The browser itself notes the status 404 of that answer.
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|line| line.contains("404")), "{complaints:?}");
    server.stop();
}

#[tokio::test]
async fn a_server_that_goes_away_is_found_again() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let server = serve(&HTTP);
    let url = server.page.clone().unwrap();
    browser.goto(&url).await;
    browser.until(SHOWN).await;
    let address = url.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    server.stop();
    browser.press(&[LEFT, UP, RIGHT, DOWN]).await;
    browser.until("!document.querySelector('#away').hidden").await;
    let before = look(&browser).await;
    let again = Server::start(&run().run(), &["--http", &address]);
    browser.until("document.querySelector('#away').hidden").await;
    browser.until(SHOWN).await;
    let after = look(&browser).await;
    assert_eq!(after["board"], before["board"], "the game goes on");
    check(&run().run(), &[after]);
    again.stop();
}

/// A page opened before the run is solved shows values afterwards.
#[tokio::test]
async fn a_run_that_is_solved_meanwhile_is_shown() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let (place, solved) = (Place::new(), Solved::new("--board 2x2"));
    let last = common::files(&solved.run().join("journal")).pop().unwrap();
    let aside = place.join("aside.json");
    std::fs::rename(&last, &aside).unwrap();
    let server = Server::start(&solved.run(), &HTTP);
    browser.goto(&server.page.clone().unwrap()).await;
    let is_unsolved = "document.querySelector('#run-facts').textContent.includes('not solved')";
    browser.until(is_unsolved).await;
    assert_eq!(browser.js(SHOWN).await, false);
    browser.click("#to-study").await;
    browser.until("document.querySelector('#positions-note').textContent !== ''").await;
    assert_eq!(browser.js("document.querySelectorAll('#positions li').length").await, 0);
    std::fs::rename(&aside, &last).unwrap();
    browser.until(&format!("!{is_unsolved} && document.querySelector('#positions li') !== null")).await;
    browser.click("#to-play").await;
    browser.until(SHOWN).await;
    check(&solved.run(), &[look(&browser).await]);
    // The browser itself notes the status 409 of the answer before.
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|line| line.contains("409")), "{complaints:?}");
    server.stop();
}

/// The page plays best moves at the chosen speed until a pause or the end of the game.
#[tokio::test]
async fn the_page_plays_until_it_is_paused() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let server = serve(&HTTP);
    browser.goto(&server.page.clone().unwrap()).await;
    browser.until(SHOWN).await;
    let moves = "document.querySelectorAll('#course-table tr').length";
    let is_playing = "document.querySelector('#auto').getAttribute('aria-pressed') === 'true'";
    browser.js("void (document.querySelector('#speed').value = '100', document.querySelector('#course-moves').open = true)").await;
    browser.click("#auto").await;
    browser.until(&format!("{is_playing} && {moves} >= 3")).await;
    assert_eq!(browser.text("auto").await, "Pause");
    browser.press(&['p']).await;
    browser.until(&format!("!({is_playing}) && ({SHOWN})")).await;
    // Waits longer than a move takes.
    let before = look(&browser).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = look(&browser).await;
    assert_eq!(after, before, "it plays although it is paused");
    check(&run().run(), &[after]);
    // A move of the user also ends the playback.
    browser.press(&['p']).await;
    browser.until(is_playing).await;
    browser.press(&['u']).await;
    browser.until(&format!("!({is_playing}) && ({SHOWN})")).await;
    // Plays at full speed to the end.
    browser.js("void (document.querySelector('#speed').value = '0')").await;
    browser.click("#auto").await;
    browser.until("!document.querySelector('#over').hidden").await;
    browser.until(&format!("!({is_playing})")).await;
    assert_eq!(look(&browser).await["lost"], "0", "best moves lose nothing");
    browser.close().await;
    server.stop();
}

/// The page can switch between runs. Boards, values, links and studies belong to the selected run.
#[tokio::test]
async fn runs_are_switched_on_the_page() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let small = Solved::new("--board 2x2");
    let runs = [format!("small={}", small.run().display()), format!("wide={}", run().run().display())];
    let args = ["serve", "--run", &runs[0], "--run", &runs[1], "--listen", "127.0.0.1:0"];
    let server = Server::launch(&[&args, &HTTP[..]].concat(), &[]);
    let url = server.page.clone().unwrap();
    browser.goto(&url).await;
    browser.until(SHOWN).await;
    let choose = |name: &str| {
        format!(
            "void (document.querySelector('#run').value = '{name}', document.querySelector('#run').dispatchEvent(new Event('change')))"
        )
    };
    for (name, cells, of) in [("wide", 6, run().run()), ("small", 4, small.run())] {
        browser.js(&choose(name)).await;
        let tiles = format!("document.querySelectorAll('#board > *').length === {cells} && ({SHOWN})");
        browser.until(&tiles).await;
        check(&of, &[look(&browser).await]);
        assert!(browser.text("run-facts").await.contains(if cells == 6 { "3×2" } else { "2×2" }));
        // A link to the board names the run.
        browser.press(&[' ']).await;
        browser
            .until(&format!("location.hash.includes('run={name}') && location.hash.includes('board=')"))
            .await;
        browser.reload().await;
        browser.until(&tiles).await;
        check(&of, &[look(&browser).await]);
    }
    browser.js(&choose("wide")).await;
    browser.click("#to-study").await;
    browser.until("document.querySelectorAll('#positions .board.small').length > 0").await;
    let cells = "document.querySelector('#positions .board.small').children.length";
    assert_eq!(browser.js(cells).await, 6, "positions of the other run");
    browser.goto(&format!("{url}#view=play&run=none")).await;
    browser.until("document.querySelector('#message').textContent.includes('No run called “none”')").await;
    browser.close().await;
    server.stop();
}

#[tokio::test]
async fn positions_are_studied_and_quizzed() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let server = serve(&HTTP);
    let url = server.page.clone().unwrap();
    browser
        .ask_chromium(
            "Emulation.setEmulatedMedia",
            serde_json::json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] }),
        )
        .await;
    browser.goto(&format!("{url}#view=study")).await;
    browser.until("document.querySelectorAll('#positions li').length === 12").await;
    browser.until("document.querySelectorAll('#value-chart polyline').length === 3").await;
    assert_eq!(browser.js("document.querySelectorAll('#layer-chart polyline').length").await, 2);
    browser.until("!document.querySelector('#perfect').hidden").await;
    let stats = on_run(&run().run(), "stats", &["--json"]).exits(0).json();
    let tiles = browser.js("[...document.querySelectorAll('#perfect-tiles tr')].map((row) => [row.children[0].textContent, row.children[2].textContent])").await;
    let tiles: Vec<_> =
        tiles.as_array().unwrap().iter().map(|row| (read(text(&row[0])), text(&row[1]).to_owned())).collect();
    let expected = stats["tiles"].as_array().unwrap();
    assert_eq!(tiles.len(), expected.len());
    for ((tile, share), expected) in tiles.iter().zip(expected) {
        assert_eq!(*tile, number(&expected["tile"]));
        let share = number(&share.trim_end_matches('%').parse::<f64>().unwrap().into());
        close(share, 100.0 * number(&expected["ended"]), 0.000_51, "ended");
    }
    assert_eq!(browser.js("document.querySelectorAll('#perfect-chart polyline').length").await, 1);
    browser.js("void (document.querySelector('#pattern').value = '32 * / * * / * 0', document.querySelector('#search-layer').value = '60')").await;
    browser.click("#search-form button").await;
    browser.until("document.querySelectorAll('#found li').length > 0").await;
    browser.click("#found button").await;
    browser.until(&format!("!document.querySelector('#play').hidden && ({SHOWN})")).await;
    let page = look(&browser).await;
    assert!(text(&page["board"]).starts_with("32 ") && text(&page["board"]).ends_with(" 0"), "{page}");
    browser.click("#to-study").await;
    let command = format!("exact2048 stats --run DIR --from \"{}\"", text(&page["board"]));
    browser.until(&format!("document.querySelector('#from-here').textContent === '{command}'")).await;
    browser.click("#to-play").await;
    check(&run().run(), &[page]);

    let live = "document.querySelector('#live').textContent";
    browser.until(&format!("{live}.includes('Value')")).await;
    browser.click("#to-quiz").await;
    browser.until("document.querySelectorAll('#quiz-board .tile').length === 6").await;
    browser.until(&format!("{live} === ''")).await;
    browser.click("#to-play").await;
    browser.until(&format!("{live}.includes('Value')")).await;
    browser.click("#to-quiz").await;
    says_why_no_tile_moves(&browser).await;
    for answers in 1..=3 {
        browser.press(&[LEFT, UP, RIGHT, DOWN]).await;
        browser.until(&format!("document.querySelector('#quiz-count').textContent === '{answers}'")).await;
        assert!(!browser.text("quiz-answer").await.is_empty());
        browser.press(&[' ']).await;
        browser.until("document.querySelector('#quiz-answer').textContent === ''").await;
    }
    browser.close().await;
    server.stop();
}

/// Presses the arrow of an illegal move, in the first quiz position with an illegal move.
async fn says_why_no_tile_moves(browser: &Browser) {
    let illegal =
        "[...document.querySelectorAll('#quiz-moves button')].findIndex((button) => button.disabled)";
    loop {
        if let Some(at) = browser.js(illegal).await.as_u64() {
            browser.press(&[[LEFT, RIGHT, UP, DOWN][at as usize]]).await;
            browser
                .until("document.querySelector('#quiz-answer').textContent.startsWith('No tile can move ')")
                .await;
            assert_eq!(browser.js("document.querySelector('#quiz-count').textContent").await, "0");
            return;
        }
        let before = browser.js("document.querySelector('#quiz-board').getAttribute('aria-label')").await;
        browser.press(&[' ']).await;
        let label = "document.querySelector('#quiz-board').getAttribute('aria-label')";
        browser.until(&format!("{label} !== {before}")).await;
    }
}

/// On the page, the moves directly follow the board, because a player needs both.
#[tokio::test]
async fn on_a_phone_the_moves_follow_the_board() {
    let Some(browser) = Browser::open(390, 844).await else { return };
    let server = serve(&HTTP);
    browser.goto(&format!("{}#view=play&run=run", server.page.clone().unwrap())).await;
    browser.until(SHOWN).await;
    let order = "['#board', '#moves', '#new', '#spawns'].map((id) => document.querySelector(id).getBoundingClientRect().top)";
    let tops = browser.js(&format!("(({order}))")).await;
    let tops: Vec<f64> = tops.as_array().unwrap().iter().map(number).collect();
    assert!(tops.is_sorted(), "{tops:?}");
    browser.close().await;
    server.stop();
}

#[tokio::test]
async fn boards_that_may_not_be_reachable_have_values_and_a_note() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let solved = Solved::new("--board 3x3 --objective reach:64 --keep 16 --disk 1MB");
    let server = Server::start(&solved.run(), &HTTP);
    browser.goto(&server.page.clone().unwrap()).await;
    browser.until(SHOWN).await;
    assert!(browser.text("answer-note").await.is_empty());
    browser.press(&['e']).await;
    browser.js("void (document.querySelector('#board-text').value = '32 16 8 / 8 4 2 / 0 0 0')").await;
    browser.js("document.querySelector('#edit-form').requestSubmit()").await;
    browser.until("document.querySelector('#answer-note').textContent !== ''").await;
    browser.until(SHOWN).await;
    assert_section("note on a board that may be impossible", &browser.text("answer-note").await);
    browser.close().await;
    server.stop();
}

/// The user starts and stops a long computation. The page shows the server's estimate, if there is one.
#[tokio::test]
async fn long_computations_are_offered_and_stopped() {
    // Refuses short requests as a slow server, the first without an estimate. Answers others after three seconds.
    const SLOW: &str = "void (() => { const real = window.fetch; let seconds; window.fetch = async (url, options) => { \
        if (!String(url).includes('api/v1/values')) return real(url, options); \
        const slow = { error: { code: 'DEADLINE_EXCEEDED', message: 'slow', seconds } }; \
        seconds = 65; \
        if (options.headers.get('grpc-timeout') === '10S') return new Response(JSON.stringify(slow), { status: 504 }); \
        await new Promise((resolve) => setTimeout(resolve, 3000)); \
        return real(url, options); }; })()";
    const OFFERED: &str = "document.querySelector('#compute').textContent === 'Compute' \
        && !document.querySelector('#compute').hidden";
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let solved = Solved::new("--board 3x2");
    let server = Server::start(&solved.run(), &HTTP);
    browser.goto(&server.page.clone().unwrap()).await;
    browser.until(SHOWN).await;
    browser.js(SLOW).await;
    browser.click("#new").await;
    browser.until(OFFERED).await;
    assert_eq!(browser.text("answer-note").await, "The run does not store these values.");
    browser.click("#new").await;
    browser.until("document.querySelector('#answer-note').textContent.includes('about 65 s')").await;
    browser.click("#compute").await;
    browser.until("document.querySelector('#compute').textContent === 'Stop'").await;
    let note = browser.text("answer-note").await;
    assert!(note.starts_with("Computing values: ") && note.ends_with(" s of about 65 s."), "{note}");
    browser.click("#compute").await;
    browser.until(OFFERED).await;
    browser.click("#compute").await;
    browser.until(SHOWN).await;
    assert_eq!(browser.js("document.querySelector('#compute').hidden").await, true);
    browser.close().await;
    server.stop();
}

#[tokio::test]
async fn best_moves_alone_are_shown_without_values_and_tokens_are_asked_for() {
    let Some(browser) = Browser::open(1100, 900).await else { return };
    let solved = Solved::new("--board 3x2 --values best-move");
    let place = Place::new();
    let token = token_file(&place, "0123456789abcdef");
    let options: Vec<&str> = token.iter().map(String::as_str).chain(HTTP).collect();
    let server = Server::start(&solved.run(), &options);
    let url = server.page.clone().unwrap();
    browser.goto(&url).await;
    for (token, is_right) in [("wrong", false), ("0123456789abcdef", true)] {
        browser.until("document.querySelector('#token-dialog').open").await;
        browser.js("void (document.querySelector('#token').value = '')").await;
        browser.write("#token", token).await;
        browser.click("#token-dialog button").await;
        if !is_right {
            browser.until("!document.querySelector('#token-wrong').hidden").await;
        }
    }
    browser.until("document.querySelectorAll('#moves .best').length === 1").await;
    assert_eq!(browser.text("value").await, "–");
    assert_eq!(browser.js("document.querySelectorAll('#moves .greyed').length").await, 4);
    assert_section("note on best moves without values", &browser.text("answer-note").await);
    let before = text(&look(&browser).await["board"]).to_owned();
    browser.press(&[' ']).await;
    browser.until(&format!("{BOARD} !== '{before}'")).await;
    // This tab remembers the token.
    browser.reload().await;
    browser.until("document.querySelectorAll('#moves .best').length === 1").await;

    // Study and quiz offer only a part, and name the missing part.
    browser.click("#to-study").await;
    browser.until("document.querySelectorAll('#positions li').length === 12").await;
    assert_section("note on positions without values", &browser.text("positions-note").await);
    let kinds = "[...document.querySelector('#kind').options].filter((kind) => !kind.disabled).map((kind) => kind.value)";
    assert_eq!(browser.js(kinds).await, serde_json::json!(["any"]));
    browser.click("#to-quiz").await;
    browser.until("document.querySelectorAll('#quiz-board .tile').length === 6").await;
    browser.press(&[LEFT, UP, RIGHT, DOWN]).await;
    browser.until("document.querySelector('#quiz-count').textContent === '1'").await;
    assert_eq!(browser.text("quiz-loss").await, "–");
    assert_eq!(browser.js("document.querySelectorAll('#quiz-values .best').length").await, 1);
    assert_eq!(browser.js("document.querySelectorAll('#quiz-values .greyed').length").await, 4);
    let said = browser.text("quiz-answer").await;
    assert!(said.starts_with("Right: ") || said.contains("this run does not store"), "{said}");
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|line| line.contains("401")), "{complaints:?}");
    server.stop();
}
