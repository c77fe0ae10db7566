// Tests what the scheduler wants of table workers between their steps.
#include "tests/worker/outside/table_job.h"
