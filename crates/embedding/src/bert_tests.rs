//! A tiny made-up model: enough to check shapes, errors and invariants.

use std::fs;

use serde_json::{Map, Value, json};

use super::*;

const SIZE: usize = 4;
const WIDE: usize = 8;

/// Writes a model folder; `change` may spoil its tensors' shapes or the config.
fn folder(change: impl Fn(&mut Vec<(String, Vec<usize>)>, &mut Value)) -> tempfile::TempDir {
    let mut tensors: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".into(), vec![6, SIZE]),
        ("embeddings.position_embeddings.weight".into(), vec![16, SIZE]),
        ("embeddings.token_type_embeddings.weight".into(), vec![2, SIZE]),
    ];
    let mut pair = |name: &str, shape: Vec<usize>| {
        tensors.push((format!("{name}.bias"), vec![shape[0]]));
        tensors.push((format!("{name}.weight"), shape));
    };
    pair("embeddings.LayerNorm", vec![SIZE]);
    let at = "encoder.layer.0";
    for name in
        ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    {
        pair(&format!("{at}.{name}"), vec![SIZE, SIZE]);
    }
    pair(&format!("{at}.intermediate.dense"), vec![WIDE, SIZE]);
    pair(&format!("{at}.output.dense"), vec![SIZE, WIDE]);
    pair(&format!("{at}.attention.output.LayerNorm"), vec![SIZE]);
    pair(&format!("{at}.output.LayerNorm"), vec![SIZE]);
    let mut config = json!({"model_type": "bert", "hidden_size": SIZE, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": WIDE, "max_position_embeddings": 16});
    change(&mut tensors, &mut config);

    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, shape) in tensors {
        let start = data.len();
        for number in 0..shape.iter().product::<usize>() {
            let value = ((number * 37 + name.len() * 11) % 19) as f32 / 19.0 - 0.4;
            data.extend_from_slice(&value.to_le_bytes());
        }
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]}));
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&data);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    fs::write(folder.path().join("vocab.txt"), "[UNK]\n[CLS]\n[SEP]\nread\nfile\nsong\n").unwrap();
    folder
}

#[test]
fn every_text_has_a_vector_of_length_one_that_depends_on_its_words_only() {
    let folder = folder(|_, _| {});
    let model = BertEmbedder::load(folder.path()).unwrap();
    let long = "file ".repeat(1000);
    let vectors = model.embed(&["read file", "READ  file", "song", "", &long]).unwrap();
    assert_eq!(model.dimensions(), SIZE);
    for vector in &vectors {
        let length: f32 = vector.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-4, "{vector:?}");
    }
    assert_eq!(vectors[0], vectors[1]);
    assert_ne!(vectors[0], vectors[2]);
    assert_eq!(model.id(), BertEmbedder::load(folder.path()).unwrap().id());
}

#[test]
fn models_of_the_wrong_shape_are_refused_with_what_is_wrong() {
    let spoilt = [
        (folder(|tensors, _| drop(tensors.remove(0))), "no tensor embeddings.word_embeddings"),
        (folder(|tensors, _| tensors[0].1 = vec![6, SIZE + 1]), "is of shape"),
        (folder(|tensors, _| tensors[0].1 = vec![3, SIZE]), "more words than the model"),
        (folder(|_, config| config["model_type"] = json!("mpnet")), "mpnet"),
        (folder(|_, config| config["num_attention_heads"] = json!(3)), "attention heads"),
        (folder(|_, config| *config = json!([])), "config.json"),
    ];
    for (folder, says) in spoilt {
        let error = BertEmbedder::load(folder.path()).unwrap_err();
        assert_eq!(error.code(), "embedding.model");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_truncated_model_is_refused() {
    let folder = folder(|_, _| {});
    let path = folder.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    for length in [0, 7, 100, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(
            BertEmbedder::load(folder.path()).unwrap_err().code(),
            "embedding.model",
            "cut to {length}"
        );
    }
}
