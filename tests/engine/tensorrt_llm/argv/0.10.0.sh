# default
trtllm-build \
  --checkpoint_dir /tritonforge/checkpoint \
  --output_dir /tritonforge/engine \
  --max_batch_size 32 \
  --max_input_len 2048 \
  --max_output_len 2048 \
  --max_beam_width 1 \
  --gpt_attention_plugin float16 \
  --gemm_plugin float16 \
  --context_fmha enable \
  --use_paged_context_fmha disable \
  --remove_input_padding enable \
  --paged_kv_cache enable \
  --multiple_profiles disable \
  --workers 1

# everything on
trtllm-build \
  --checkpoint_dir /tritonforge/checkpoint \
  --output_dir /tritonforge/engine \
  --max_batch_size 64 \
  --max_input_len 16384 \
  --max_output_len 16384 \
  --max_beam_width 4 \
  --max_num_tokens 4096 \
  --gpt_attention_plugin float16 \
  --gemm_plugin float16 \
  --nccl_plugin float16 \
  --context_fmha enable \
  --use_paged_context_fmha enable \
  --remove_input_padding enable \
  --paged_kv_cache enable \
  --multiple_profiles enable \
  --workers 2 \
  --gather_generation_logits \
  --profiling_verbosity detailed \
  --tokens_per_block 32

# unfused
trtllm-build \
  --checkpoint_dir /tritonforge/checkpoint \
  --output_dir /tritonforge/engine \
  --max_batch_size 4 \
  --max_input_len 2048 \
  --max_output_len 2048 \
  --max_beam_width 1 \
  --gpt_attention_plugin disable \
  --gemm_plugin disable \
  --context_fmha disable \
  --use_paged_context_fmha disable \
  --remove_input_padding disable \
  --paged_kv_cache disable \
  --multiple_profiles disable \
  --workers 1

# tp2 int4_awq
trtllm-build \
  --checkpoint_dir /tritonforge/checkpoint \
  --output_dir /tritonforge/engine \
  --max_batch_size 32 \
  --max_input_len 2048 \
  --max_output_len 2048 \
  --max_beam_width 1 \
  --gpt_attention_plugin bfloat16 \
  --gemm_plugin bfloat16 \
  --nccl_plugin bfloat16 \
  --context_fmha enable \
  --use_paged_context_fmha disable \
  --remove_input_padding enable \
  --paged_kv_cache enable \
  --multiple_profiles disable \
  --workers 2

# int8_weight_only, long prompts
trtllm-build \
  --checkpoint_dir /tritonforge/checkpoint \
  --output_dir /tritonforge/engine \
  --max_batch_size 8 \
  --max_input_len 12288 \
  --max_output_len 4096 \
  --max_beam_width 1 \
  --gpt_attention_plugin float16 \
  --gemm_plugin float16 \
  --context_fmha enable \
  --use_paged_context_fmha disable \
  --remove_input_padding enable \
  --paged_kv_cache enable \
  --multiple_profiles disable \
  --workers 1

# pp2 fp8 with an fp8 KV cache in pages
trtllm-build \
  --checkpoint_dir /tritonforge/checkpoint \
  --output_dir /tritonforge/engine \
  --max_batch_size 32 \
  --max_input_len 2048 \
  --max_output_len 2048 \
  --max_beam_width 1 \
  --gpt_attention_plugin bfloat16 \
  --gemm_plugin bfloat16 \
  --nccl_plugin bfloat16 \
  --context_fmha enable \
  --use_paged_context_fmha enable \
  --remove_input_padding enable \
  --paged_kv_cache enable \
  --use_fp8_context_fmha enable \
  --strongly_typed \
  --multiple_profiles disable \
  --workers 1
