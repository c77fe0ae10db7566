// Includes everything about jobs: their settings, derived facts, and parsing.
#pragma once

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/metrics/metric.h"
#include "common/platform/file_system.h"
