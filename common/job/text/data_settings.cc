// The settings of "data": the data and how it is read.
#include "common/job/spec/data_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

namespace {

using enum Note;
using enum OnResume;

constexpr const char* kRepeat = "repeat";

Section ColumnSection() {
  SettingTable<ColumnSpec> column("column", "data.columns[]");
  column.Add("name", &ColumnSpec::name, "All names of columns and features differ.", kRequired);
  column.Add("type", &ColumnSpec::type,
             "multi: several values in one cell. weight: how much the example counts, 0 or more. "
             "group: a text, whom the example belongs to (a user, a query), for metrics and losses "
             "by group.");
  column.Add("transform", &ColumnSpec::transform,
             "log1p is sign(x) log(1 + |x|); standardize is (x - mean) / scale.",
             Where(&ColumnSpec::type, {ColumnType::kNumeric}));
  column.Add("mean", &ColumnSpec::mean, "What standardize subtracts.",
             Where(&ColumnSpec::transform, {Transform::kStandardize}));
  column.Add("scale", &ColumnSpec::scale, "What standardize divides by; not 0.",
             Where(&ColumnSpec::transform, {Transform::kStandardize}));
  column.Add("separator", &ColumnSpec::separator, "One character between the values of a cell.",
             Where(&ColumnSpec::type, {ColumnType::kMulti}));
  column.Add("positive", &ColumnSpec::positive,
             "Texts that mean 1, all others 0; empty: the cell is a number.",
             Where(&ColumnSpec::type, {ColumnType::kLabel}));
  column.Add("classes", &ColumnSpec::classes,
             "Under the loss softmax: the texts of class 0, 1, ...; empty: the cell is the number "
             "of a class.",
             Where(&ColumnSpec::type, {ColumnType::kLabel}), kPrintedUnlessDefault);
  column.Add("vocabulary", &ColumnSpec::vocabulary,
             "Columns of one vocabulary have the same keys: a value in one is that value in the "
             "others, with the same rows. Empty: the column's own name, which other columns may "
             "name.",
             Where(&ColumnSpec::type, {ColumnType::kCategorical, ColumnType::kMulti}),
             kPrintedUnlessDefault);
  column.Add("vocab_size", &ColumnSpec::vocab_size,
             "Values are ids, whole numbers from 0 on, each with a row of its own. Ids from this "
             "one on read as zeros, train nothing and are counted as unknown_ids. 0: values are "
             "texts.",
             Range{0, 9e15},
             Where(&ColumnSpec::type, {ColumnType::kCategorical, ColumnType::kMulti}),
             kPrintedUnlessDefault);
  column.Add(
      "from", &ColumnSpec::from,
      "The column, not of type label, whose cell this one reads too, as another type or "
      "behind another transform: a user may be a feature and the group. Empty: a cell of "
      "its own.",
      Where(&ColumnSpec::type, {ColumnType::kNumeric, ColumnType::kCategorical, ColumnType::kMulti,
                                ColumnType::kWeight, ColumnType::kGroup}),
      kPrintedUnlessDefault);
  column.AddSpelling(
      kRepeat, ValueKind::kInteger,
      "Stands for that many columns of this kind: pixel0, pixel1, ...",
      [](const JsonValue&, ColumnSpec*) {},
      // The function above does nothing, because RepeatColumns() repeats the column in the list.
      Range{1, 65536});
  return column.Done();
}

Section FeatureSection() {
  SettingTable<FeatureSpec> feature("feature", "data.features[]");
  feature.Add("name", &FeatureSpec::name, "How models refer to it.", kRequired);
  feature.Add("kind", &FeatureSpec::kind,
              "bucketized: the interval of a number. crossed: a pair or more of values.");
  feature.Add("from", &FeatureSpec::from,
              "bucketized: one numeric column. crossed: two or more categorical columns or "
              "bucketized features before this one.",
              kRequired);
  feature.Add("boundaries", &FeatureSpec::boundaries,
              "Ascending, of the number as it stands in the file; v falls into the bucket given by "
              "how many are <= v.",
              Where(&FeatureSpec::kind, {FeatureKind::kBucketized}));
  feature.Add("hash_buckets", &FeatureSpec::hash_buckets,
              "Values modulo this many; 0: all 64 bits.",
              Where(&FeatureSpec::kind, {FeatureKind::kCrossed}));
  return feature.Done();
}

Section NegativeSection() {
  SettingTable<NegativeSpec> negatives("negatives", "data.negatives");
  negatives.Add("per_positive", &NegativeSpec::per_positive,
                "Examples with label 0 made of each training example with label 1: its own row "
                "with the item of another. 0: none.",
                Range{0, 1000});
  negatives.Add("by", &NegativeSpec::by,
                "frequency: items are drawn as often as rows have them. uniform: each different "
                "item alike.");
  return negatives.Done();
}

Section VocabularySection() {
  SettingTable<VocabularySpec> vocabulary("vocabulary", "data.vocabulary");
  vocabulary.Add("file", &VocabularySpec::file,
                 "A file that `hdps prepare --min_count=N` wrote. It is sought from the job file's "
                 "folder, then from the working directory; full checkpoints keep a copy.",
                 kRequired, Hashed::kNothing);
  vocabulary.Add("checksum", &VocabularySpec::checksum,
                 "That of the file, 16 hexadecimal digits; another file is refused.", kRequired);
  return vocabulary.Done();
}

Section EvalSetSection() {
  SettingTable<EvalSetSpec> set("eval_set", "data.eval_sets[]");
  set.Add("name", &EvalSetSpec::name, "How reports and other settings refer to it.", kRequired);
  set.Add("files", &EvalSetSpec::files, "As of data.eval; at least one.", kRequired);
  return set.Done();
}

constexpr auto kFormat = &DataSpec::format;

// Adds the settings that say what is trained on and what is evaluated.
void AddFiles(SettingTable<DataSpec>* data) {
  data->Add(
      "train", &DataSpec::train,
      "Files, read in this order; .gz and .zst are unpacked on the way. A folder stands for "
      "the files in it, a pattern (*, ?, [...]) for those it matches, by name. Relative paths "
      "are sought from the job file's folder, then from the working directory. At least one. "
      "kafka://HOST:PORT,HOST:PORT/TOPIC, alone in the list, is a topic.",
      Hashed::kDefault);
  data->Add("follow", &DataSpec::follow,
            "The only entry of `train` is a log that grows: the job reads what there is and waits "
            "for more, for whole lines in the newest file and for files with larger names. It ends "
            "at train.max_steps, by data.follow_until, or when it is stopped; see docs/data.md.",
            Hashed::kNothing, kPrintedUnlessDefault);
  data->Add("follow_until", &DataSpec::follow_until,
            "The name of a file in the followed folder, or beside the followed file, that says: "
            "all rows are written. The job reads to the end and is done. Empty: none.",
            Hashed::kNothing, kPrintedUnlessDefault);
  data->AddObject("kafka", &DataSpec::kafka, KafkaSection(),
                  "How the only entry of `train` is read, if it is a topic.", Hashed::kNothing,
                  kPrintedUnlessDefault);
  data->Add("eval", &DataSpec::eval, "Files that are never trained on, as in train.",
            Hashed::kDefault);
  data->AddObject("eval_sets", &DataSpec::eval_sets, EvalSetSection(),
                  "Further files that are evaluated whenever those are, each set by itself.",
                  Hashed::kNothing, kPrintedUnlessDefault);
  data->Add("validation_share", &DataSpec::validation_share,
            "This share of the rows of the training files, picked by a hash of the seed and the "
            "row without its labels, is never trained on and takes no place in the epoch: the "
            "evaluation set where data.eval is empty, else one more, called validation. 0: none.",
            Range{0, 0.5}, kPrintedUnlessDefault);
  data->Add(
      "validation_block_lines", &DataSpec::validation_block_lines,
      "validation_share picks whole blocks of so many lines of a file, by a hash of the seed, "
      "the file's place in `train` and the block's number. 0: rows, one by one.",
      Range{0, 1e9}, kPrintedUnlessDefault);
}

// Adds the settings for splitting lines into cells.
void AddCells(SettingTable<DataSpec>* data) {
  data->Add("delimiter", &DataSpec::delimiter, "One character between cells; \"\\t\" for TSV.",
            Where(kFormat, {DataFormat::kCsv}));
  data->Add("quote", &DataSpec::quote,
            "Stands around cells that may hold delimiters. Empty: there is none, and a quote is a "
            "letter like others.",
            OneOf{{"\"", "'", ""}}, Where(kFormat, {DataFormat::kCsv}), kPrintedUnlessDefault);
  data->Add("decimal", &DataSpec::decimal, "Between the whole of a number and its fraction.",
            OneOf{{".", ","}}, Where(kFormat, {DataFormat::kCsv}), kPrintedUnlessDefault);
  data->Add("header", &DataSpec::header,
            "The first line of each file holds the names of its columns. csv: in any order, with "
            "others between them.",
            Where(kFormat, {DataFormat::kCsv, DataFormat::kCriteo}),
            // Criteo files had no header in earlier versions, and the digests of their jobs must
            // not change.
            [](const DataSpec& spec) { return spec.format == DataFormat::kCsv || spec.header; });
  data->Add("missing", &DataSpec::missing, "A cell with this text, blanks trimmed, is missing.",
            Where(kFormat, {DataFormat::kCsv, DataFormat::kParquet, DataFormat::kTfrecord,
                            DataFormat::kJsonl}));
  data->Add("comment", &DataSpec::comment,
            "Lines that begin with this are passed over; empty: none.",
            Where(kFormat, {DataFormat::kCsv}));
}

// Adds what is known of the values of sparse features.
void AddValues(SettingTable<DataSpec>* data) {
  data->AddObject(
      "vocabulary", &DataSpec::vocabulary, VocabularySection(),
      "The values of sparse features that have keys of their own. All other values of a feature, "
      "or of the columns of one vocabulary, share one key. Not given: every value has its own.",
      Where(kFormat,
            {DataFormat::kCsv, DataFormat::kCriteo, DataFormat::kLibsvm, DataFormat::kLibffm,
             DataFormat::kLibfm, DataFormat::kParquet, DataFormat::kTfrecord, DataFormat::kJsonl}),
      kPrintedUnlessDefault);
  data->Add("distinct", &DataSpec::distinct,
            "Different values of sparse features, {\"user\": 6040}, as hdps prepare counts them: "
            "hdps plan reckons with them, and auto_parallel places the tables by them. What is "
            "trained does not depend on them otherwise.",
            Range{1, 9e15}, Hashed::kNothing, kPrintedUnlessDefault);
  data->Add(
      "distinct_half", &DataSpec::distinct_half,
      "How many of the values of data.distinct, the most frequent ones, half of the rows have. "
      "Not given for a feature: the law of Zipf with exponent 1.05.",
      Range{1, 9e15}, Hashed::kNothing, kPrintedUnlessDefault);
}

// Adds the settings for keeping parsed rows.
void AddCache(SettingTable<DataSpec>* data) {
  data->Add("cache", &DataSpec::cache,
            "Where parsed rows are kept for later passes over the same files: memory, a file on "
            "disk, or nowhere. auto: in memory, or on disk where they do not fit, if there is more "
            "than one pass. It changes no result.",
            Hashed::kNothing, kPrintedUnlessDefault);
  data->Add("cache_path", &DataSpec::cache_path,
            "Folder of the cache's files, which jobs on the same data and settings share. A "
            "relative one is beside the job file. Empty: `rows` in the folder of --out; "
            "hdps-worker, which has no such folder, keeps rows in memory alone.",
            Hashed::kNothing, kPrintedUnlessDefault);
  data->Add("cache_share", &DataSpec::cache_share,
            "Rows that are kept take at most this share of the memory that the process may have.",
            Range{0, 0.9}, Hashed::kNothing, kPrintedUnlessDefault);
}

// Replaces a column with `repeat` by that many columns.
void RepeatColumns(const JsonValue& data, DataSpec* spec) {
  const JsonValue* list = data.Find("columns");
  std::vector<ColumnSpec> columns;
  for (size_t i = 0; i < spec->columns.size(); ++i) {
    const JsonValue* repeat = list->items[i].Find(kRepeat);
    if (repeat == nullptr) columns.push_back(spec->columns[i]);
    for (uint64_t n = 0; repeat != nullptr && n < repeat->magnitude; ++n) {
      columns.push_back(spec->columns[i]);
      columns.back().name += std::to_string(n);
    }
  }
  spec->columns = std::move(columns);
}

}  // namespace

Section DataSection() {
  SettingTable<DataSpec> data("data", "data");
  data.Add("format", kFormat,
           "criteo: label, I1..I13, C1..C26 between tabs. libsvm: one sparse feature `features`. "
           "libffm and libfm: `field0`, `field1`, ..., by the number before an index, or by the "
           "place of an entry in its row. idx: images of bytes, a numeric column a pixel; their "
           "labels are in the file named alike with `labels` for `images` and `idx1` for `idx3`. "
           "parquet, tfrecord, jsonl: rows with columns by name; see docs/data.md.");
  AddFiles(&data);
  AddCells(&data);
  data.AddObject(
      "columns", &DataSpec::columns, ColumnSection(),
      "One entry a column, in the file's order where it has no names; exactly one is the label, "
      "or with `model.tasks` one a task. idx: the label and a numeric column a pixel, each the "
      "byte behind its transform; not given: see image_shape.",
      Where(kFormat, {DataFormat::kCsv, DataFormat::kIdx, DataFormat::kParquet,
                      DataFormat::kTfrecord, DataFormat::kJsonl}));
  data.AddObject("features", &DataSpec::features, FeatureSection(),
                 "Categorical features derived from columns and from features before them.",
                 Where(kFormat, {DataFormat::kCsv, DataFormat::kCriteo, DataFormat::kParquet,
                                 DataFormat::kTfrecord, DataFormat::kJsonl}));
  data.Add("num_fields", &DataSpec::num_fields,
           "Fields 0..n-1, one sparse feature each; a libfm row has exactly so many entries.",
           Range{1, 65536}, Where(kFormat, {DataFormat::kLibffm, DataFormat::kLibfm}));
  data.Add("numeric_transform", &DataSpec::numeric_transform,
           "Of I1..I13; log1p is sign(x) log(1 + |x|).", OneOf{{"none", "log1p"}},
           Where(kFormat, {DataFormat::kCriteo}));
  data.Add(
      "image_shape", &DataSpec::image_shape,
      "Axes of one image, as its file has them. Pixels go through the last axis first; without "
      "`columns` they are `pixel0`, `pixel1`, ..., each the byte / 255.",
      Range{1, 65536}, Where(kFormat, {DataFormat::kIdx}));
  data.Add("item_features", &DataSpec::item_features,
           "The sparse features, none of them derived, that say which item a row is about; for "
           "`negatives` and the loss sampled_softmax.",
           kPrintedUnlessDefault);
  data.AddObject("negatives", &DataSpec::negatives, NegativeSection(),
                 "Negative examples that the reader makes, of training data alone.",
                 kPrintedUnlessDefault, kMayChange);
  AddValues(&data);
  data.Add("parts", &DataSpec::parts,
           "The rows of a step that each worker takes, worker 0 the first ones, worker 1 those "
           "behind: a "
           "number for each worker, and train.batch_size is their sum. What is left at the end of "
           "an epoch fills "
           "the first workers first. Empty: every so many-th row, so parts differ by one at most.",
           Range{1, 16777216}, kPrintedUnlessDefault, kMayChange);
  data.Add("shuffle_rows", &DataSpec::shuffle_rows,
           "Rows in training's shuffle window; 0: file order.", Range{0, 1e8}, kMayChange);
  data.Add("max_bad_rows", &DataSpec::max_bad_rows, "More bad rows than this end the job.",
           Range{0, 9e15}, Hashed::kDefault);
  AddCache(&data);
  data.AfterReading(RepeatColumns);
  return data.Done();
}

}  // namespace hdps
