#!/bin/sh
# The ladder of workloads, each along its own axis: sh scripts/ladder.sh STORE cuda|cpu [PART...]
# PART: layers, compiled, attention, training, decode, dynamic, allocator (default: all). Some 15 minutes on an H200.
# A sweep in which a point failed does not end the ladder: the point is a row of its store.
store=$1 device=$2
shift 2
PYTHON=${PYTHON:-python}

sweep() {
    "$PYTHON" -m runner -m store="$store" device="$device" "$@" || echo "exit code $?: $*" >&2
}

search() { # search HIGH SETTING...: the size, from $low to HIGH
    high=$1
    shift
    sweep hydra/sweeper=crossover search.axis=size search.low="$low" search.high="$high" search.multiple="$low" "$@"
}

layers() { # eager: where each operation and layer stops being overhead-bound
    search "$rows" search.most_points=8 search.most_runs=10 dtype="$dtypes" \
        workload=matmul_add,addmm,elementwise,linear,mlp,norm,attention,transformer_block
}

compiled() { # the same compiled, on a grid: each point costs seconds of compiling
    sweep dtype="$dtype" compile=true measure.slopes_every=0 size="$grid" \
        workload=elementwise,linear,mlp,norm,attention,transformer_block
}

attention() { # with the matrix of scores in memory, once in place, and fused
    sweep dtype="$dtypes" workload=attention workload.impl=naive,inplace,sdpa workload.causal=true size="$lengths" \
        measure.slopes_every=0
}

training() { # where a step crosses, what optimizers cost, and what checkpointing does to time and memory
    search "$batch" search.most_points=6 search.most_runs=6 dtype="$dtypes" \
        workload=train_step workload.optimizer=adamw workload.impl=fused workload.capturable="$capturable"
    sweep dtype=fp32 workload=train_step workload.optimizer=sgd,momentum,adamw workload.impl=loop,foreach,fused \
        size="$batches" measure.slopes_every=0
    sweep dtype=fp32 workload=train_step workload.optimizer=adamw workload.impl=fused workload.capturable="$capturable" \
        workload.checkpoint=false,true workload.model=transformer workload.tokens=64 workload.autocast="$autocast" \
        size="$examples" measure.slopes_every=0
    sweep dtype=fp32 workload=train_step workload.optimizer=adamw workload.impl=fused compile=true size="$batches" \
        measure.slopes_every=0
    sweep dtype=fp32 workload=train_step workload.optimizer=momentum,adamw size="$examples" measure.slopes_every=0 \
        artifacts=true # torch's own table beside the phases
}

decode() { # one token for every sequence of the batch: eager, compiled, with CUDA graphs; and the prompt before it
    sweep dtype="$dtype" workload=llm_decode workload.model="$model" workload.cache=static size="$sequences" \
        measure.slopes_every=0
    sweep dtype="$dtype" workload=llm_decode workload.model="$model" workload.cache=dynamic size="$few" \
        measure.slopes_every=0
    sweep dtype="$dtype" workload=llm_decode workload.model="$model" workload.cache=static compile=reduce-overhead,true \
        size="$few" measure.slopes_every=0 point_timeout=600
    sweep dtype="$dtype" workload=llm_prefill workload.model="$model" size="$prompts" measure.slopes_every=0
}

dynamic() { sweep +experiment=dynamic; }

allocator() { sweep +experiment=allocator; }

case $device in
cuda)
    low=8 rows=16384 batch=32768
    dtype=bf16 dtypes=bf16,fp32 grid=512,1024,2048,4096,8192 lengths=128,512,2048,4096
    batches=16,512,16384 examples=4,32 autocast=bf16 capturable=true
    model=0.5b sequences=1,8,64,128,256,512 few=1,64 prompts=32,256,1024
    ;;
cpu)
    low=1 rows=64 batch=16
    dtype=fp32 dtypes=fp32 grid=1,8,64 lengths=16,64,256
    batches=1,8,64 examples=1,4 autocast=null capturable=false
    model=tiny sequences=1,4,16 few=1 prompts=1,8,64
    ;;
*)
    echo "usage: sh scripts/ladder.sh STORE cuda|cpu [PART...]" >&2
    exit 1
    ;;
esac
for part in ${*:-layers compiled attention training decode dynamic allocator}; do
    started=$(date +%s)
    "$part"
    echo "$part: $(($(date +%s) - started)) s" >&2
done
