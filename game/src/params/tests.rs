use super::error::MOST_ROWS;
use super::*;
use crate::{Discount, KeptLayers, Layer, Spawner};

fn params(board: &str, objective: &str, until: Option<u32>) -> Result<Params, ParamsError> {
    Params::usual(board, objective).until(until).build()
}

#[test]
fn last_layers_are_the_published_ones() {
    for (board, last) in [("2x2", 60), ("3x2", 252), ("4x2", 1020), ("3x3", 2044), ("4x3", 16380)] {
        assert_eq!(params(board, "score", None).unwrap().last_layer(), Layer(last), "{board}");
    }
}

/// Every packable board has a split whose rows can be numbered, and the default split is such a split.
#[test]
fn splits_with_too_many_rows_are_refused() {
    let split = |board, large: u8| Params::usual(board, "reach:32").large(large).build();
    for (board, large) in [("4x4", 5), ("2x8", 5), ("3x5", 6)] {
        let refused = split(board, large).unwrap_err();
        assert!(matches!(refused, ParamsError::TooManyRows { rows, .. } if rows > MOST_ROWS), "{refused}");
    }
    for board in ["4x4", "2x8", "3x5", "7x2"] {
        assert_eq!(params(board, "reach:2048", None).unwrap().split().large(), 4, "{board}");
    }
}

/// A shard of best moves holds the layers from one kept pair to the next.
#[test]
fn best_moves_of_large_boards_need_kept_layers() {
    let stored = |board, until: Option<u32>, kept: &str, best_moves| {
        let kept: KeptLayers = kept.parse().unwrap();
        Params::usual(board, "score").until(until).kept(kept).best_moves(best_moves).build()
    };
    let refused = Err(ParamsError::BestMovesTooFarApart { layers: 8188 });
    assert_eq!(stored("4x3", None, "starts", true), refused);
    assert_eq!(stored("4x3", None, "4097", true), Err(ParamsError::BestMovesTooFarApart { layers: 4097 }));
    for (board, until, kept, best_moves) in [
        ("4x3", None, "4096", true),
        ("4x3", None, "starts", false),
        ("4x3", Some(8196), "starts", true),
        ("3x3", None, "starts", true),
    ] {
        assert!(stored(board, until, kept, best_moves).is_ok(), "{board} {until:?} {kept}");
    }
}

/// Default policies with and without best moves.
#[test]
fn fewer_layers_are_kept_with_best_moves() {
    let kept = |best_moves| {
        Params::usual("3x3", "score").best_moves(best_moves).build().unwrap().contents().kept().to_string()
    };
    assert_eq!((kept(false).as_str(), kept(true).as_str()), ("4", "128"));
}

/// Manifests of runs with two layers in every four equal manifests from before the policy existed.
#[test]
fn kept_layers_are_written_unless_they_are_the_default() {
    let usual = Params::small("3x3");
    let text = serde_json::to_string(&usual).unwrap();
    assert_eq!(
        text,
        r#"{"board":"3x3","objective":"score","spawn4":"1/10","precision":32,"until_layer":null,"large":4}"#
    );
    let others = usual.to_builder().kept(KeptLayers::new(16, 2).unwrap()).build().unwrap();
    let with = |kept: &str| text.replace("\"large\":4", &format!("\"large\":4,\"kept\":{kept}"));
    assert_eq!(serde_json::to_string(&others).unwrap(), with(r#"{"period":16,"width":2}"#));
    let best_moves = usual.to_builder().best_moves(true).build().unwrap();
    assert_eq!(
        serde_json::to_string(&best_moves).unwrap(),
        text.replace("\"large\":4", "\"large\":4,\"best_moves\":true")
    );
    for params in [usual, others, best_moves] {
        let text = serde_json::to_string(&params).unwrap();
        assert_eq!(serde_json::from_str::<Params>(&text).unwrap(), params);
    }
    for wrong in [r#"{"period":4,"width":1}"#, r#"{"period":4}"#, r#"{"period":4,"width":2,"from":1}"#] {
        assert!(serde_json::from_str::<Params>(&with(wrong)).is_err(), "{wrong}");
    }
}

/// Manifests of runs without discount and adversary equal manifests from before these options existed.
#[test]
fn discounts_and_adversaries_are_written_unless_they_are_the_default() {
    let usual = params("3x3", "reach:64", None).unwrap();
    let text = serde_json::to_string(&usual).unwrap();
    assert!(!text.contains("discount") && !text.contains("spawner"), "{text}");
    let with = |more: &str| text.replace("\"large\":4", &format!("\"large\":4,{more}"));
    let discounted = usual.to_builder().discount("0.95".parse().unwrap()).build().unwrap();
    assert_eq!(serde_json::to_string(&discounted).unwrap(), with(r#""discount":"19/20""#));
    let worst = usual.to_builder().spawner(Spawner::Worst).build().unwrap();
    assert_eq!(serde_json::to_string(&worst).unwrap(), with(r#""spawner":"worst""#));
    for params in [discounted, worst] {
        let text = serde_json::to_string(&params).unwrap();
        assert_eq!(serde_json::from_str::<Params>(&text).unwrap(), params);
    }
    for wrong in [r#""discount":"0""#, r#""discount":0.95"#, r#""spawner":"best""#] {
        assert!(serde_json::from_str::<Params>(&with(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn discounts_and_adversaries_need_an_objective_that_supports_them() {
    let with = |objective| Params::usual("3x3", objective);
    let discount: Discount = "0.95".parse().unwrap();
    for objective in ["score", "lose:64"] {
        assert!(matches!(with(objective).discount(discount).build(), Err(ParamsError::Discount(_))));
    }
    let worst = |objective| with(objective).spawner(Spawner::Worst);
    assert!(matches!(worst("lose:64").build(), Err(ParamsError::CertainLoss(_))));
    assert!(worst("score").build().is_ok());
    assert!(worst("reach:64").discount(discount).build().is_ok());
}

/// The resumed run decides the open choices, unless the resulting parameters are not valid.
#[test]
fn open_choices_are_those_of_the_run() {
    let all_open = OpenChoices { kept: true, best_moves: true, precision: true, value_step: true };
    let held = Params::usual("4x3", "score").kept(KeptLayers::STARTS).precision(Precision::Bits64);
    let (held, job) = (held.build().unwrap(), Params::small("4x3"));
    assert_eq!(job.clone().resuming(&held, all_open), held);
    assert_eq!(job.clone().resuming(&held, OpenChoices::default()), job);
    let moves = job.to_builder().best_moves(true).build().unwrap();
    let open = OpenChoices { kept: true, ..OpenChoices::default() };
    assert_eq!(moves.clone().resuming(&held, open), moves);
}

/// Every manifest with unknown parameters or parameters that contradict each other is refused.
#[test]
fn manifests_are_checked() {
    let text = serde_json::to_string(&Params::small("4x3")).unwrap();
    assert!(serde_json::from_str::<Params>(&text).is_ok());
    for (from, to) in [
        ("\"large\":5", "\"large\":7"),
        ("\"huge\":9", "\"huge\":3"),
        ("\"until_layer\":null", "\"until_layer\":5"),
        ("\"large\":5", "\"large\":5,\"discount\":\"1/2\""),
        ("\"large\":5", "\"large\":5,\"small\":5"),
        ("\"4x3\"", "\"4x4\""),
    ] {
        assert!(text.contains(from), "{text}");
        assert!(serde_json::from_str::<Params>(&text.replace(from, to)).is_err(), "{to}");
    }
}

#[test]
fn tiles_must_fit() {
    assert!(params("7x2", "score", None).is_ok());
    assert!(matches!(params("4x4", "score", None), Err(ParamsError::TileTooLarge { .. })));
    assert!(params("4x4", "reach:2048", None).is_ok());
    assert!(params("4x4", "score", Some(100)).is_ok());
    assert!(matches!(params("2x2", "reach:64", None), Err(ParamsError::OutOfReach { .. })));
    assert!(matches!(params("2x2", "score", Some(5)), Err(ParamsError::OddLayer(5))));
}

fn from(board: &str, objective: &str, position: &str) -> Result<Params, ParamsError> {
    let size = board.parse().unwrap();
    let builder = Params::usual(board, objective);
    builder.from(super::position(position, size)?).build()
}

/// Manifests of runs with the starts of games equal manifests from before positions existed.
#[test]
fn positions_are_written_in_canonical_form_unless_there_is_none() {
    assert!(!serde_json::to_string(&Params::small("3x3")).unwrap().contains("from"));
    let params = from("3x3", "reach:64", "0 0 2 / 0 2 8 / 2 4 16").unwrap();
    assert_eq!(params, from("3x3", "reach:64", "16 4 2 / 8 2 0 / 2 0 0").unwrap());
    let text = serde_json::to_string(&params).unwrap();
    assert!(text.ends_with(&format!(
        r#""from":"{}"}}"#,
        params.game().from().unwrap().to_text("3x3".parse().unwrap())
    )));
    assert_eq!(serde_json::from_str::<Params>(&text).unwrap(), params);
    assert_eq!(params.to_builder().build().unwrap(), params);
    assert_eq!((params.first_layer(), params.game().last_start()), (Layer(34), Layer(34)));
    assert_eq!(params.layers().next(), Some(Layer(34)));
    let starts = params.game().starts();
    assert_eq!((starts.len(), starts[0].weight), (1, 1));
    assert!(serde_json::from_str::<Params>(&text.replace(r#""from":""#, r#""from":"x "#)).is_err());
}

/// The bounds on tiles hold for all boards that follow from a board within them.
#[test]
fn positions_outside_the_game_are_refused() {
    let refused = |board, objective, position| match from(board, objective, position).unwrap_err() {
        ParamsError::Position { reason, .. } => reason,
        other => panic!("{position}: {other}"),
    };
    for (board, objective, position, word) in [
        ("3x3", "score", "2 4 / 8 2", "expected 3 rows"),
        ("3x3", "reach:64", "64 2 0 / 0 0 0 / 0 0 0", "found 64"),
        ("3x3", "score", "2048 2 0 / 0 0 0 / 0 0 0", "at most 1024"),
        ("3x3", "score", "512 512 512 / 2 0 0 / 0 0 0", "large tiles"),
        ("3x3", "score", "8 16 0 / 0 0 0 / 0 0 0", "neither a 2 nor a 4"),
        ("3x3", "score", "2 0 0 / 0 0 0 / 0 0 0", "two tiles"),
        ("3x3", "score", "2 4 2 / 4 2 4 / 2 4 2", "legal move"),
    ] {
        let reason = refused(board, objective, position);
        assert!(reason.contains(word), "{position}: {reason}");
    }
    assert!(from("2x2", "score", "16 8 / 4 4").is_ok(), "no matter whether a game leads there");
    let until = Params::usual("3x3", "score")
        .from(super::position("8 4 0 / 0 0 0 / 0 0 0", "3x3".parse().unwrap()).unwrap());
    let below = until.until(10).build();
    assert_eq!(below, Err(ParamsError::BelowPosition { layer: 10, first: 12 }));
}
