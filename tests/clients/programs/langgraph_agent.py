"""An agent of LangGraph on the chat models of LangChain."""

from __future__ import annotations

import sys

import tools
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

models = {
    "chat": lambda: ChatOpenAI(model="plan-execute", streaming=True),
    "responses": lambda: ChatOpenAI(model="plan-execute", use_responses_api=True),
    "messages": lambda: ChatAnthropic(model_name="plan-execute", max_tokens=8000),
}
agent = create_react_agent(models[sys.argv[1]](), list(tools.TOOLS.values()))
answer = agent.invoke({"messages": [("user", sys.argv[2])]})["messages"][-1]
print(answer.text if isinstance(answer.text, str) else answer.text())
