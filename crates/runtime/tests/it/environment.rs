//! MIOpen's values for true and false, and the text that describes each
//! variable.

use gfxpack_runtime::Environment;

#[test]
fn true_and_false_are_spelled_as_in_miopen() {
    let disabled =
        |value: &str| Environment::from_pairs([("MIOPEN_DISABLE_CACHE", value)]).disable_cache();
    for word in ["1", "enable", "enabled", "yes", "on", "true", "TRUE", "Yes", "oN"] {
        assert!(disabled(word), "{word}");
    }
    for word in ["0", "disable", "disabled", "no", "off", "false", "", "2", "y", "t", " 1", "01"] {
        assert!(!disabled(word), "{word}");
    }
}

#[test]
fn other_variables_are_not_kept() {
    assert_eq!(Environment::from_pairs([("UNRELATED", "x")]), Environment::default());
}

#[test]
fn every_variable_describes_its_effect() {
    let effect = |name: &str, value: &str| {
        let variables = Environment::from_pairs([(name, value)]).variables();
        let variable = variables.into_iter().find(|variable| variable.name == name).unwrap();
        assert_eq!(variable.value.as_deref(), (!value.is_empty()).then_some(value));
        variable.effect
    };
    for variable in Environment::default().variables() {
        assert!(!variable.effect.is_empty() && variable.value.is_none(), "{}", variable.name);
    }
    assert!(effect("MIOPEN_DISABLE_CACHE", "yes").contains("no file is read"));
    assert!(effect("MIOPEN_DISABLE_CACHE", "off").contains("both caches are used"));
    assert!(effect("MIOPEN_DISABLE_CACHE", "si").contains("not understood"));
    assert!(effect("MIOPEN_LOG_LEVEL", "3").contains("hidden"));
    assert!(effect("MIOPEN_LOG_LEVEL", "4").contains("shown"));
    assert!(effect("MIOPEN_LOG_LEVEL", "loud").contains("not understood"));
    assert!(effect("MIOPEN_DEVICE_ARCH", "gfx906").contains("taken for"));
    assert!(effect("MIOPEN_DEVICE_CU", "60").contains("taken for"));
    for nonsense in ["0", "-1", "many", "99999999999"] {
        assert!(effect("MIOPEN_DEVICE_CU", nonsense).contains("not understood"), "{nonsense}");
    }
    assert!(effect("HOME", "relative").contains("below it"));
    assert!(effect("HOME", "/").contains("counts as unset"));
    assert!(effect("MIOPEN_FIND_MODE", "2").starts_with("none here"));
}
