# inference script (stable version)
import torch
from transformers import LlamaForCausalLM, LlamaTokenizer

# Force early CUDA init
torch.cuda._lazy_init()

model = LlamaForCausalLM.from_pretrained("meta-llama/7B", device_map="auto")
tokenizer = LlamaTokenizer.from_pretrained("meta-llama/7B")

# Optional: compile once after warm‑up
model = torch.compile(model, mode="max-autotune")

def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    output = model.generate(**inputs, max_new_tokens=50)
    return tokenizer.decode(output[0])
