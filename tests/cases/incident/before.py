# inference script (simplified)
import torch
from transformers import LlamaForCausalLM, LlamaTokenizer

model = LlamaForCausalLM.from_pretrained("meta-llama/7B")
tokenizer = LlamaTokenizer.from_pretrained("meta-llama/7B")
model = torch.compile(model)  # eager fallback after a few hours

def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    output = model.generate(**inputs, max_new_tokens=50)
    return tokenizer.decode(output[0])
