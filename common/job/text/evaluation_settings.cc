// The settings for evaluations, and for what follows from them.
#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"
#include "common/job/text/setting_table.h"
#include "common/metrics/metric.h"

namespace hdps {

namespace {

using enum Note;
using enum OnResume;

template <typename Spec>
void AddWatch(SettingTable<Spec>* table, const std::string& patience) {
  table->Add("patience", &Spec::patience, patience, Range{0, 1e6});
  table->Add("metric", &Spec::metric,
             "The figure that is watched, one of those that train.metrics gives; not given: the "
             "first of them. Under model.type tables one that the program reports.",
             kNoDefault);
  table->Add("set", &Spec::set,
             "Name of the evaluation set: eval (the files of data.eval), validation (the rows of "
             "data.validation_share), or one of data.eval_sets; empty: the first there is.");
  table->Add("min_delta", &Spec::min_delta, "A figure is better when it is by more than this.",
             Range{0, kAnyNumber});
}

Section EarlyStopSection() {
  SettingTable<WatchSpec> watch("early_stop", "train.early_stop");
  AddWatch(&watch,
           "The job ends, as after its last epoch, at the evaluation that is the so many-th in a "
           "row without a better figure; 0: it goes on.");
  return watch.Done();
}

Section PlateauSection() {
  SettingTable<PlateauSpec> watch("plateau", "train.plateau");
  AddWatch(&watch,
           "All learning rates but those of ftrl fall after so many evaluations in a row without a "
           "better figure, "
           "and again after as many more; 0: never.");
  // A factor of 0 would end the training, and 1 would change nothing.
  watch.Add("factor", &PlateauSpec::factor, "What they are multiplied with then.",
            Range{1e-6, 0.999});
  watch.Add("least", &PlateauSpec::least, "They do not fall below so much of what they were.",
            Range{0, 1});
  return watch.Done();
}

Section ProgressiveSection() {
  SettingTable<ProgressiveSpec> progressive("progressive", "train.progressive");
  progressive.Add(
      "window", &ProgressiveSpec::window,
      "Figures of so many of the newest examples, each by the score that it had before it was "
      "learned: auc, logloss and calibration; under squared_error and bpr what evaluations tell. "
      "Each worker keeps the scores of its part, and sends them whenever so many were trained and "
      "at saves and ends of epochs; they are told as an evaluation set of the name progressive, "
      "and the last ones in summary.json. In a later epoch the rows have been learned before. "
      "0: none.",
      Range{0, kProgressiveWindowMax});
  return progressive.Done();
}

}  // namespace

void AddEvaluations(SettingTable<TrainText>* train) {
  train->Add("metrics", &TrainSpec::metrics,
             "What evaluations tell. Empty: auc and logloss; logloss under softmax; rmse and mae "
             "under squared_error; auc, or group_auc where there is a group column, under bpr and "
             "sampled_softmax. " +
                 MetricWordsText(),
             Hashed::kNothing, kPrintedUnlessDefault);
  train->Add("evals_per_epoch", &TrainSpec::evals_per_epoch,
             "Evaluate so many times an epoch, at equal distances, the last time at its end; the "
             "rows are counted for it before the training. 0: as the two above say.",
             Range{0, 1e6}, Hashed::kNothing, kPrintedUnlessDefault);
  train->AddObject("progressive", &TrainSpec::progressive, ProgressiveSection(),
                   "Figures of what is trained, by scores from before it is learned: a stream has "
                   "no rows that are held out.",
                   Hashed::kNothing, kPrintedUnlessDefault);
  train->AddObject("early_stop", &TrainSpec::early_stop, EarlyStopSection(),
                   "End before the last epoch where evaluations get no better.", Hashed::kNothing,
                   kPrintedUnlessDefault);
  train->AddObject("plateau", &TrainSpec::plateau, PlateauSection(),
                   "Let the learning rates fall where evaluations get no better.",
                   kPrintedUnlessDefault, kMayChange);
}

}  // namespace hdps
